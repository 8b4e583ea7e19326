/*
 * Bodies as values of jansson, and their two encodings. CONTRACT.md defines kinds and bytes. Texts are UTF-8. The
 * two-field kinds are objects, as in JSON.
 */
#ifndef CROSS_LANGUAGE_BODY_H
#define CROSS_LANGUAGE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* The numbers are the templates of the schema. */
typedef enum kind_en
{
    KIND_VOID = 10,
    KIND_INTEGER = 11,
    KIND_TEXT = 12,
    KIND_INTEGERS = 13,
    KIND_CREATE_OBJECT = 14,
    KIND_CALL_OBJECT = 15,
    KIND_OBJECT_VALUE = 16,
    KIND_VALUE = 17
}
kind_t;

typedef enum encoding_en
{
    ENCODING_BINARY = 0,
    ENCODING_JSON = 1
}
encoding_t;

#define SCHEMA_ID 3001
#define HEADER_LENGTH 8
#define ENVELOPE_BLOCK_LENGTH 16
#define ENVELOPE_LENGTH (HEADER_LENGTH + ENVELOPE_BLOCK_LENGTH)

typedef enum template_en
{
    TEMPLATE_REQUEST = 1,
    TEMPLATE_RESPONSE = 2,
    TEMPLATE_CALLBACK_REQUEST = 3,
    TEMPLATE_CALLBACK_RESPONSE = 4
}
template_t;

typedef struct envelope_stct
{
    uint16_t template_id;
    int64_t correlation_id;
    /* Operation or status. */
    uint8_t code;
    uint8_t encoding;
}
envelope_t;

/* Bytes that grow. Zero-initialise, and free `bytes`. */
typedef struct buffer_stct
{
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    /* Memory was not available. `length` is wrong then. */
    bool has_failed;
}
buffer_t;

void buffer_append(buffer_t *buffer, const void *bytes, size_t length);

/* Replaces the content of a buffer by an envelope. */
void envelope_write(const envelope_t *envelope, buffer_t *buffer);

/* Returns the index of the body, or -1. */
ptrdiff_t envelope_read(envelope_t *envelope, const uint8_t *message, size_t length);

/* Appends a body of a kind. Returns false if the value is not of that kind, or exceeds a limit. */
bool body_write(kind_t kind, encoding_t encoding, json_t *value, buffer_t *buffer);

/* Returns a new reference to the body, which is all of the bytes, or NULL. */
json_t *body_read(kind_t kind, encoding_t encoding, const uint8_t *bytes, size_t length);

/* Reads JSON. Returns a new reference, or NULL. */
json_t *body_read_json(const char *text, size_t length);

/* Appends the canonical text of results, equal in all languages. */
void body_canonical(const json_t *value, buffer_t *text);

#endif
