#include "body.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_ID 3001
#define NODE_LENGTH 16
#define GROUP_LIMIT 65534
#define DEPTH_LIMIT 64

static void *allocated(size_t count, size_t size)
{
    /* One more: a text of no bytes is not NULL, and a text ends with a zero byte. */
    void *memory = calloc(count + 1, size);
    if (NULL == memory)
    {
        fputs("error: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void append(buffer_t *buffer, const void *bytes, size_t length)
{
    if (length > buffer->capacity - buffer->length)
    {
        const size_t capacity = 2 * (buffer->length + length);
        uint8_t *grown = allocated(capacity, 1);
        if (buffer->length > 0)
        {
            memcpy(grown, buffer->bytes, buffer->length);
        }
        free(buffer->bytes);
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    if (length > 0)
    {
        memcpy(buffer->bytes + buffer->length, bytes, length);
    }
    buffer->length += length;
}

static void append_number(buffer_t *buffer, uint64_t number, size_t length)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < length; i++)
    {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    append(buffer, bytes, length);
}

static void append_header(buffer_t *buffer, size_t block_length, uint16_t template_id)
{
    append_number(buffer, block_length, 2);
    append_number(buffer, template_id, 2);
    append_number(buffer, SCHEMA_ID, 2);
    append_number(buffer, 0, 2);
}

static void append_text(buffer_t *buffer, const text_t *text, size_t length_of_length)
{
    append_number(buffer, text->length, length_of_length);
    append(buffer, text->bytes, text->length);
}

void envelope_write(const envelope_t *envelope, buffer_t *buffer)
{
    buffer->length = 0;
    append_header(buffer, ENVELOPE_BLOCK_LENGTH, envelope->template_id);
    append_number(buffer, (uint64_t)envelope->correlation_id, 8);
    append_number(buffer, envelope->code, 8);
}

static size_t node_count(const value_t *value)
{
    size_t count = 1;
    for (size_t i = 0; i < value->count; i++)
    {
        count += node_count(&value->members[i]);
    }
    return count;
}

static bool append_node(buffer_t *buffer, const value_t *value)
{
    if (value->key.length > GROUP_LIMIT)
    {
        return false;
    }
    append_number(buffer, value->kind, 4);
    append_number(buffer, value->count, 4);
    append_number(buffer, (uint64_t)value->bits, 8);
    append_text(buffer, &value->key, 2);
    append_text(buffer, &value->text, 4);
    bool is_written = true;
    for (size_t i = 0; i < value->count && is_written; i++)
    {
        is_written = append_node(buffer, &value->members[i]);
    }
    return is_written;
}

bool body_write(const body_t *body, buffer_t *buffer)
{
    const size_t field_count = KIND_INTEGER == body->kind ? 1 :
        body->kind >= KIND_CREATE_OBJECT && body->kind <= KIND_OBJECT_VALUE ? 2 : 0;
    append_header(buffer, 8 * field_count, (uint16_t)body->kind);
    for (size_t i = 0; i < field_count; i++)
    {
        append_number(buffer, (uint64_t)body->fields[i], 8);
    }
    if (KIND_TEXT == body->kind)
    {
        append_text(buffer, &body->text, 4);
    }
    if (KIND_INTEGERS == body->kind)
    {
        append_number(buffer, 8, 2);
        append_number(buffer, body->count, 2);
        for (size_t i = 0; i < body->count; i++)
        {
            append_number(buffer, (uint64_t)body->integers[i], 8);
        }
        return body->count <= GROUP_LIMIT;
    }
    if (KIND_VALUE == body->kind)
    {
        const size_t count = node_count(&body->value);
        append_number(buffer, NODE_LENGTH, 2);
        append_number(buffer, count, 2);
        return count <= GROUP_LIMIT && append_node(buffer, &body->value);
    }
    return true;
}

/* Takes bytes from the front. After a failure it yields zeros. */
typedef struct reader_stct
{
    const uint8_t *rest;
    size_t length;
    bool has_failed;
}
reader_t;

static reader_t take(reader_t *reader, size_t length)
{
    reader->has_failed = reader->has_failed || length > reader->length;
    if (reader->has_failed)
    {
        return (reader_t){ .has_failed = true };
    }
    const reader_t taken = { .rest = reader->rest, .length = length };
    reader->rest += length;
    reader->length -= length;
    return taken;
}

static uint64_t take_number(reader_t *reader, size_t length)
{
    const reader_t bytes = take(reader, length);
    uint64_t number = 0;
    for (size_t i = bytes.length; i > 0; i--)
    {
        number = number << 8 | bytes.rest[i - 1];
    }
    return number;
}

static bool is_utf8(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length;)
    {
        uint64_t word;
        if (length - i >= sizeof(word) && (memcpy(&word, bytes + i, sizeof(word)), 0 == (word & UINT64_C(0x8080808080808080))))
        {
            i += sizeof(word);
            continue;
        }
        const uint8_t first = bytes[i];
        const size_t count = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
        if (0 == count || count > length - i)
        {
            return false;
        }
        for (size_t j = 1; j < count; j++)
        {
            if (0x80 != (bytes[i + j] & 0xc0))
            {
                return false;
            }
        }
        /* Longer than necessary, a surrogate, or beyond U+10FFFF. */
        const uint8_t second = count > 1 ? bytes[i + 1] : 0;
        if ((0xe0 == first && second < 0xa0) || (0xed == first && second > 0x9f) ||
            (0xf0 == first && second < 0x90) || (0xf4 == first && second > 0x8f))
        {
            return false;
        }
        i += count;
    }
    return true;
}

static text_t take_text(reader_t *reader, size_t length_of_length)
{
    const reader_t bytes = take(reader, take_number(reader, length_of_length));
    text_t text = { .bytes = allocated(bytes.length, 1), .length = bytes.length };
    if (bytes.length > 0)
    {
        memcpy(text.bytes, bytes.rest, bytes.length);
    }
    reader->has_failed = reader->has_failed || !is_utf8(bytes.rest, bytes.length);
    return text;
}

/* Reads the size of a group whose entries have at least a length. A count that lies allocates no memory. */
static size_t take_group(reader_t *reader, size_t least, size_t *entry_length)
{
    *entry_length = take_number(reader, 2);
    const size_t count = take_number(reader, 2);
    reader->has_failed = reader->has_failed || *entry_length < least || *entry_length * count > reader->length;
    return reader->has_failed ? 0 : count;
}

static void take_node(reader_t *reader, value_t *value, size_t entry_length, size_t *count, size_t depth)
{
    reader->has_failed = reader->has_failed || 0 == *count || 0 == depth;
    if (reader->has_failed)
    {
        return;
    }
    --*count;
    reader_t block = take(reader, entry_length);
    value->kind = (node_kind_t)(take_number(&block, 4) & 0xff);
    const size_t members = take_number(&block, 4);
    value->bits = (int64_t)take_number(&block, 8);
    value->key = take_text(reader, 2);
    value->text = take_text(reader, 4);
    double number;
    memcpy(&number, &value->bits, sizeof(number));
    const bool has_members = NODE_LIST == value->kind || NODE_MAP == value->kind;
    /* Each member is one of the nodes. */
    reader->has_failed = reader->has_failed || value->kind > NODE_MAP || (has_members && members > *count) ||
        (NODE_BOOLEAN == value->kind && 0 != value->bits && 1 != value->bits) ||
        (NODE_NUMBER == value->kind && !isfinite(number));
    if (reader->has_failed || !has_members)
    {
        return;
    }
    value->members = allocated(members, sizeof(value_t));
    value->count = members;
    for (size_t i = 0; i < members; i++)
    {
        const text_t *key = &value->members[i].key;
        take_node(reader, &value->members[i], entry_length, count, depth - 1);
        if (NODE_MAP == value->kind && !reader->has_failed)
        {
            reader->has_failed = NULL != memchr(key->bytes, 0, key->length);
            for (size_t j = 0; j < i; j++)
            {
                const text_t *other = &value->members[j].key;
                reader->has_failed = reader->has_failed ||
                    (key->length == other->length && 0 == memcmp(key->bytes, other->bytes, key->length));
            }
        }
    }
}

bool body_read(body_t *body, kind_t kind, const uint8_t *bytes, size_t length)
{
    *body = (body_t){ .kind = kind };
    reader_t reader = { .rest = bytes, .length = length };
    const size_t block_length = take_number(&reader, 2);
    const uint64_t template_id = take_number(&reader, 2), schema_id = take_number(&reader, 2);
    take_number(&reader, 2);
    reader_t block = take(&reader, block_length);
    reader.has_failed = reader.has_failed || template_id != (uint64_t)kind || SCHEMA_ID != schema_id;
    size_t entry_length, count;
    switch (kind)
    {
        case KIND_VOID:
            break;

        case KIND_INTEGER:
            body->fields[0] = (int64_t)take_number(&block, 8);
            break;

        case KIND_TEXT:
            body->text = take_text(&reader, 4);
            break;

        case KIND_INTEGERS:
            body->count = take_group(&reader, 8, &entry_length);
            body->integers = allocated(body->count, sizeof(int64_t));
            for (size_t i = 0; i < body->count; i++)
            {
                reader_t entry = take(&reader, entry_length);
                body->integers[i] = (int64_t)take_number(&entry, 8);
            }
            break;

        case KIND_CREATE_OBJECT:
        case KIND_CALL_OBJECT:
        case KIND_OBJECT_VALUE:
            body->fields[0] = (int64_t)take_number(&block, 8);
            body->fields[1] = (int64_t)take_number(&block, 8);
            break;

        case KIND_VALUE:
            count = take_group(&reader, NODE_LENGTH, &entry_length);
            take_node(&reader, &body->value, entry_length, &count, DEPTH_LIMIT);
            reader.has_failed = reader.has_failed || count > 0;
            break;
    }
    return !reader.has_failed && !block.has_failed && 0 == reader.length;
}

ptrdiff_t envelope_read(envelope_t *envelope, const uint8_t *message, size_t length)
{
    reader_t reader = { .rest = message, .length = length };
    const size_t block_length = take_number(&reader, 2);
    envelope->template_id = (uint16_t)take_number(&reader, 2);
    const uint64_t schema_id = take_number(&reader, 2);
    take_number(&reader, 2);
    reader_t block = take(&reader, block_length);
    envelope->correlation_id = (int64_t)take_number(&block, 8);
    envelope->code = (uint8_t)take_number(&block, 1);
    const bool is_envelope = !reader.has_failed && SCHEMA_ID == schema_id && block_length >= ENVELOPE_BLOCK_LENGTH &&
        envelope->template_id >= TEMPLATE_REQUEST && envelope->template_id <= TEMPLATE_CALLBACK_RESPONSE;
    return is_envelope ? (ptrdiff_t)(HEADER_LENGTH + block_length) : -1;
}

static void free_value(value_t *value)
{
    for (size_t i = 0; i < value->count; i++)
    {
        free_value(&value->members[i]);
    }
    free(value->members);
    free(value->key.bytes);
    free(value->text.bytes);
}

void body_free(body_t *body)
{
    free_value(&body->value);
    free(body->text.bytes);
    free(body->integers);
}
