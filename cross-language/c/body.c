#include "body.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_LENGTH 16
#define GROUP_LIMIT 65534
/* Of the nodes of a server's answer. The contract allows 64. */
#define DEPTH_LIMIT 64

enum
{
    NODE_NULL,
    NODE_BOOLEAN,
    NODE_INTEGER,
    NODE_NUMBER,
    NODE_TEXT,
    NODE_LIST,
    NODE_MAP
};

void buffer_append(buffer_t *buffer, const void *bytes, size_t length)
{
    if (length > buffer->capacity - buffer->length)
    {
        const size_t capacity = 2 * (buffer->length + length);
        uint8_t *grown = realloc(buffer->bytes, capacity);
        if (NULL == grown)
        {
            buffer->has_failed = true;
            return;
        }
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    if (length > 0)
    {
        memcpy(buffer->bytes + buffer->length, bytes, length);
        buffer->length += length;
    }
}

/* Little-endian on every machine. */
static void append_number(buffer_t *buffer, uint64_t value, size_t length)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < length; i++)
    {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    buffer_append(buffer, bytes, length);
}

static uint64_t number_at(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++)
    {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static void append_header(buffer_t *buffer, uint16_t block_length, uint16_t template_id)
{
    append_number(buffer, block_length, 2);
    append_number(buffer, template_id, 2);
    append_number(buffer, SCHEMA_ID, 2);
    append_number(buffer, 0, 2);
}

void envelope_write(const envelope_t *envelope, buffer_t *buffer)
{
    buffer->length = 0;
    append_header(buffer, ENVELOPE_BLOCK_LENGTH, envelope->template_id);
    append_number(buffer, (uint64_t)envelope->correlation_id, 8);
    append_number(buffer, envelope->code, 1);
    append_number(buffer, envelope->encoding, 1);
    append_number(buffer, 0, 6);
}

ptrdiff_t envelope_read(envelope_t *envelope, const uint8_t *message, size_t length)
{
    if (length < ENVELOPE_LENGTH)
    {
        return -1;
    }
    const size_t block_length = number_at(message, 2);
    envelope->template_id = (uint16_t)number_at(message + 2, 2);
    if (number_at(message + 4, 2) != SCHEMA_ID ||
        envelope->template_id < TEMPLATE_REQUEST ||
        envelope->template_id > TEMPLATE_CALLBACK_RESPONSE ||
        block_length < ENVELOPE_BLOCK_LENGTH ||
        block_length > length - HEADER_LENGTH)
    {
        return -1;
    }
    envelope->correlation_id = (int64_t)number_at(message + 8, 8);
    envelope->code = message[16];
    envelope->encoding = message[17];
    return (ptrdiff_t)(HEADER_LENGTH + block_length);
}

/* The names of a two-field kind. */
static const char *const *field_names(kind_t kind)
{
    static const char *const create[] = { "initialValue", "amount" };
    static const char *const call[] = { "objectId", "amount" };
    static const char *const value[] = { "objectId", "value" };
    return KIND_CREATE_OBJECT == kind ? create : KIND_CALL_OBJECT == kind ? call : value;
}

static bool is_of_kind(kind_t kind, const json_t *value)
{
    size_t index;
    json_t *element;
    switch (kind)
    {
        case KIND_VOID:
            return json_is_null(value);

        case KIND_INTEGER:
            return json_is_integer(value);

        case KIND_TEXT:
            return json_is_string(value);

        case KIND_INTEGERS:
            if (!json_is_array(value) || json_array_size(value) > GROUP_LIMIT)
            {
                return false;
            }
            json_array_foreach(value, index, element)
            {
                if (!json_is_integer(element))
                {
                    return false;
                }
            }
            return true;

        case KIND_CREATE_OBJECT:
        case KIND_CALL_OBJECT:
        case KIND_OBJECT_VALUE:
            return json_object_size(value) == 2 &&
                json_is_integer(json_object_get(value, field_names(kind)[0])) &&
                json_is_integer(json_object_get(value, field_names(kind)[1]));

        case KIND_VALUE:
            return NULL != value;
    }
    return false;
}

static size_t node_count(json_t *value)
{
    size_t count = 1, index;
    json_t *member;
    const char *key;
    if (json_is_array(value))
    {
        json_array_foreach(value, index, member)
        {
            count += node_count(member);
        }
    }
    else if (json_is_object(value))
    {
        json_object_foreach(value, key, member)
        {
            count += node_count(member);
        }
    }
    return count;
}

static bool append_node(buffer_t *buffer, const char *key, json_t *value)
{
    const size_t key_length = strlen(key);
    unsigned kind = NODE_NULL;
    size_t children = 0, text_length = 0, index;
    uint64_t bits = 0;
    const char *text = "", *member_key;
    double number;
    json_t *member;
    switch (json_typeof(value))
    {
        case JSON_NULL:
            break;

        case JSON_TRUE:
        case JSON_FALSE:
            kind = NODE_BOOLEAN;
            bits = json_is_true(value);
            break;

        case JSON_INTEGER:
            kind = NODE_INTEGER;
            bits = (uint64_t)json_integer_value(value);
            break;

        case JSON_REAL:
            kind = NODE_NUMBER;
            number = json_real_value(value);
            memcpy(&bits, &number, sizeof(bits));
            break;

        case JSON_STRING:
            kind = NODE_TEXT;
            text = json_string_value(value);
            text_length = json_string_length(value);
            break;

        case JSON_ARRAY:
            kind = NODE_LIST;
            children = json_array_size(value);
            break;

        case JSON_OBJECT:
            kind = NODE_MAP;
            children = json_object_size(value);
            break;
    }
    if (key_length > GROUP_LIMIT || text_length > UINT32_MAX)
    {
        return false;
    }
    append_number(buffer, kind, 4);
    append_number(buffer, children, 4);
    append_number(buffer, bits, 8);
    append_number(buffer, key_length, 2);
    buffer_append(buffer, key, key_length);
    append_number(buffer, text_length, 4);
    buffer_append(buffer, text, text_length);
    if (json_is_array(value))
    {
        json_array_foreach(value, index, member)
        {
            if (!append_node(buffer, "", member))
            {
                return false;
            }
        }
    }
    else if (json_is_object(value))
    {
        json_object_foreach(value, member_key, member)
        {
            if (!append_node(buffer, member_key, member))
            {
                return false;
            }
        }
    }
    return true;
}

static bool write_binary(kind_t kind, json_t *value, buffer_t *buffer)
{
    size_t index, count;
    json_t *element;
    switch (kind)
    {
        case KIND_VOID:
            append_header(buffer, 0, kind);
            return true;

        case KIND_INTEGER:
            append_header(buffer, 8, kind);
            append_number(buffer, (uint64_t)json_integer_value(value), 8);
            return true;

        case KIND_TEXT:
            append_header(buffer, 0, kind);
            append_number(buffer, json_string_length(value), 4);
            buffer_append(buffer, json_string_value(value), json_string_length(value));
            return json_string_length(value) <= UINT32_MAX;

        case KIND_INTEGERS:
            append_header(buffer, 0, kind);
            append_number(buffer, 8, 2);
            append_number(buffer, json_array_size(value), 2);
            json_array_foreach(value, index, element)
            {
                append_number(buffer, (uint64_t)json_integer_value(element), 8);
            }
            return true;

        case KIND_CREATE_OBJECT:
        case KIND_CALL_OBJECT:
        case KIND_OBJECT_VALUE:
            append_header(buffer, 16, kind);
            for (index = 0; index < 2; index++)
            {
                element = json_object_get(value, field_names(kind)[index]);
                append_number(buffer, (uint64_t)json_integer_value(element), 8);
            }
            return true;

        case KIND_VALUE:
            count = node_count(value);
            append_header(buffer, 0, kind);
            append_number(buffer, NODE_LENGTH, 2);
            append_number(buffer, count, 2);
            return count <= GROUP_LIMIT && append_node(buffer, "", value);
    }
    return false;
}

static int append_dump(const char *text, size_t length, void *buffer)
{
    buffer_append(buffer, text, length);
    return 0;
}

bool body_write(kind_t kind, encoding_t encoding, json_t *value, buffer_t *buffer)
{
    if (!is_of_kind(kind, value))
    {
        return false;
    }
    const bool is_written = ENCODING_JSON == encoding ?
        json_dump_callback(value, append_dump, buffer, JSON_ENCODE_ANY | JSON_COMPACT) == 0 :
        write_binary(kind, value, buffer);
    return is_written && !buffer->has_failed;
}

/* Bytes that are still to be read. */
typedef struct reader_stct
{
    const uint8_t *bytes;
    size_t length;
    bool has_failed;
}
reader_t;

static const uint8_t *take(reader_t *reader, size_t length)
{
    static const uint8_t nothing[NODE_LENGTH];
    if (reader->has_failed || length > reader->length)
    {
        reader->has_failed = true;
        return nothing;
    }
    const uint8_t *bytes = reader->bytes;
    reader->bytes += length;
    reader->length -= length;
    return bytes;
}

/* At most 8 bytes. */
static uint64_t take_number(reader_t *reader, size_t length)
{
    return number_at(take(reader, length), length);
}

static json_t *take_text(reader_t *reader, size_t length)
{
    const uint8_t *bytes = take(reader, length);
    /* NULL if the bytes are not UTF-8. */
    return reader->has_failed ? NULL : json_stringn((const char *)bytes, length);
}

/* Reads a node and its children. Returns NULL after a failure. `key` is a new reference. */
static json_t *take_node(reader_t *reader, size_t block_length, size_t *count, unsigned depth, json_t **key)
{
    *key = NULL;
    if (0 == *count || 0 == depth)
    {
        return NULL;
    }
    (*count)--;
    const uint8_t *block = take(reader, block_length);
    if (reader->has_failed)
    {
        return NULL;
    }
    const unsigned kind = block[0];
    const size_t children = number_at(block + 4, 4);
    const uint64_t bits = number_at(block + 8, 8);
    *key = take_text(reader, take_number(reader, 2));
    json_t *text = take_text(reader, take_number(reader, 4));
    json_t *value = NULL;
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (NULL == *key || NULL == text)
    {
        reader->has_failed = true;
    }
    else if (NODE_NULL == kind)
    {
        value = json_null();
    }
    else if (NODE_BOOLEAN == kind && bits <= 1)
    {
        value = json_boolean(bits);
    }
    else if (NODE_INTEGER == kind)
    {
        value = json_integer((json_int_t)bits);
    }
    else if (NODE_NUMBER == kind)
    {
        /* NULL unless finite. */
        value = json_real(number);
    }
    else if (NODE_TEXT == kind)
    {
        value = json_incref(text);
    }
    else if (NODE_LIST == kind || NODE_MAP == kind)
    {
        value = NODE_LIST == kind ? json_array() : json_object();
        for (size_t i = 0; i < children && NULL != value; i++)
        {
            json_t *member_key;
            json_t *member = take_node(reader, block_length, count, depth - 1, &member_key);
            int result = -1;
            if (NULL != member && NODE_LIST == kind)
            {
                result = json_array_append(value, member);
            }
            else if (NULL != member && NULL == json_object_get(value, json_string_value(member_key)))
            {
                result = json_object_set(value, json_string_value(member_key), member);
            }
            json_decref(member);
            json_decref(member_key);
            if (result < 0)
            {
                json_decref(value);
                value = NULL;
            }
        }
    }
    json_decref(text);
    return value;
}

/* Reads the size of a group whose entries have at least a length. */
static size_t take_group(reader_t *reader, size_t least, size_t *block_length)
{
    *block_length = take_number(reader, 2);
    const size_t count = take_number(reader, 2);
    if (*block_length < least || *block_length * count > reader->length)
    {
        reader->has_failed = true;
        return 0;
    }
    return count;
}

static json_t *read_binary(kind_t kind, const uint8_t *bytes, size_t length)
{
    reader_t reader = { .bytes = bytes, .length = length };
    const size_t block_length = take_number(&reader, 2);
    const uint64_t template_id = take_number(&reader, 2);
    const uint64_t schema_id = take_number(&reader, 2);
    take_number(&reader, 2);
    reader_t block = { .bytes = take(&reader, block_length), .length = block_length };
    if (reader.has_failed || template_id != (uint64_t)kind || SCHEMA_ID != schema_id)
    {
        return NULL;
    }
    json_t *value = NULL, *key = NULL;
    size_t entry_length, count;
    switch (kind)
    {
        case KIND_VOID:
            value = json_null();
            break;

        case KIND_INTEGER:
            value = json_integer((json_int_t)take_number(&block, 8));
            break;

        case KIND_TEXT:
            value = take_text(&reader, take_number(&reader, 4));
            break;

        case KIND_INTEGERS:
            value = json_array();
            count = take_group(&reader, 8, &entry_length);
            for (size_t i = 0; i < count; i++)
            {
                json_array_append_new(value, json_integer((json_int_t)number_at(take(&reader, entry_length), 8)));
            }
            break;

        case KIND_CREATE_OBJECT:
        case KIND_CALL_OBJECT:
        case KIND_OBJECT_VALUE:
            value = json_object();
            for (size_t i = 0; i < 2; i++)
            {
                json_object_set_new(value, field_names(kind)[i], json_integer((json_int_t)take_number(&block, 8)));
            }
            break;

        case KIND_VALUE:
            count = take_group(&reader, NODE_LENGTH, &entry_length);
            value = take_node(&reader, entry_length, &count, DEPTH_LIMIT, &key);
            json_decref(key);
            reader.has_failed |= count > 0;
            break;
    }
    if (reader.has_failed || block.has_failed || reader.length > 0)
    {
        json_decref(value);
        return NULL;
    }
    return value;
}

json_t *body_read_json(const char *text, size_t length)
{
    return json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
}

json_t *body_read(kind_t kind, encoding_t encoding, const uint8_t *bytes, size_t length)
{
    json_t *value = ENCODING_JSON == encoding ?
        body_read_json((const char *)bytes, length) : read_binary(kind, bytes, length);
    if (NULL != value && !is_of_kind(kind, value))
    {
        json_decref(value);
        return NULL;
    }
    return value;
}

static void append_string(buffer_t *text, const char *string)
{
    buffer_append(text, string, strlen(string));
}

static void canonical_string(buffer_t *text, const char *string, size_t length)
{
    char escape[8];
    append_string(text, "\"");
    for (size_t i = 0; i < length; i++)
    {
        const unsigned char byte = (unsigned char)string[i];
        if ('"' == byte || '\\' == byte)
        {
            append_string(text, "\\");
            buffer_append(text, &byte, 1);
        }
        else if (byte < ' ')
        {
            snprintf(escape, sizeof(escape), "\\u%04x", byte);
            append_string(text, escape);
        }
        else
        {
            buffer_append(text, &byte, 1);
        }
    }
    append_string(text, "\"");
}

static int compare_keys(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void canonical_object(const json_t *value, buffer_t *text)
{
    const size_t size = json_object_size(value);
    const char **keys = calloc(size + 1, sizeof(char *));
    if (NULL == keys)
    {
        text->has_failed = true;
        return;
    }
    size_t count = 0;
    for (void *at = json_object_iter((json_t *)value); NULL != at; at = json_object_iter_next((json_t *)value, at))
    {
        keys[count++] = json_object_iter_key(at);
    }
    qsort(keys, count, sizeof(char *), compare_keys);
    append_string(text, "{");
    for (size_t i = 0; i < count; i++)
    {
        append_string(text, i > 0 ? "," : "");
        canonical_string(text, keys[i], strlen(keys[i]));
        append_string(text, ":");
        body_canonical(json_object_get(value, keys[i]), text);
    }
    append_string(text, "}");
    free(keys);
}

void body_canonical(const json_t *value, buffer_t *text)
{
    char number[32];
    double real;
    uint64_t bits;
    switch (json_typeof(value))
    {
        case JSON_NULL:
            append_string(text, "null");
            break;

        case JSON_TRUE:
            append_string(text, "true");
            break;

        case JSON_FALSE:
            append_string(text, "false");
            break;

        case JSON_INTEGER:
            snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
            append_string(text, number);
            break;

        case JSON_REAL:
            real = json_real_value(value);
            memcpy(&bits, &real, sizeof(bits));
            snprintf(number, sizeof(number), "0x%016" PRIx64, bits);
            append_string(text, number);
            break;

        case JSON_STRING:
            canonical_string(text, json_string_value(value), json_string_length(value));
            break;

        case JSON_ARRAY:
            append_string(text, "[");
            for (size_t i = 0; i < json_array_size(value); i++)
            {
                append_string(text, i > 0 ? "," : "");
                body_canonical(json_array_get(value, i), text);
            }
            append_string(text, "]");
            break;

        case JSON_OBJECT:
            canonical_object(value, text);
            break;
    }
}
