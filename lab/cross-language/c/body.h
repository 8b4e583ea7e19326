/* Messages: envelopes and bodies, in the layout of schema.xml. CONTRACT.md defines the kinds. Texts are UTF-8. */
#ifndef CROSS_LANGUAGE_BODY_H
#define CROSS_LANGUAGE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are the templates of the schema. */
typedef enum kind_en
{
    KIND_VOID = 10,
    KIND_INTEGER,
    KIND_TEXT,
    KIND_INTEGERS,
    KIND_CREATE_OBJECT,
    KIND_CALL_OBJECT,
    KIND_OBJECT_VALUE,
    KIND_VALUE
}
kind_t;

typedef enum node_kind_en
{
    NODE_EMPTY,
    NODE_BOOLEAN,
    NODE_INTEGER,
    NODE_NUMBER,
    NODE_TEXT,
    NODE_LIST,
    NODE_MAP
}
node_kind_t;

typedef struct text_stct
{
    char *bytes;
    size_t length;
}
text_t;

/* A dynamically typed value. */
typedef struct value_stct
{
    node_kind_t kind;
    /* The integer, the bits of the number, or 0 or 1 of the boolean. */
    int64_t bits;
    text_t text;
    /* In a map. */
    text_t key;
    /* Members of a list or a map. */
    struct value_stct *members;
    size_t count;
}
value_t;

/* An argument, a result, or the text of an error. */
typedef struct body_stct
{
    kind_t kind;
    /* The integer, or the fields of a kind that has two. */
    int64_t fields[2];
    text_t text;
    int64_t *integers;
    size_t count;
    value_t value;
}
body_t;

#define HEADER_LENGTH 8
#define ENVELOPE_BLOCK_LENGTH 16

typedef enum template_en
{
    TEMPLATE_REQUEST = 1,
    TEMPLATE_RESPONSE,
    TEMPLATE_CALLBACK_REQUEST,
    TEMPLATE_CALLBACK_RESPONSE
}
template_t;

typedef struct envelope_stct
{
    uint16_t template_id;
    int64_t correlation_id;
    /* Operation or status. */
    uint8_t code;
}
envelope_t;

/* Bytes that grow. Zero-initialise, and free `bytes`. Without memory, the program ends. */
typedef struct buffer_stct
{
    uint8_t *bytes;
    size_t length;
    size_t capacity;
}
buffer_t;

/* Replaces the content of a buffer by an envelope. */
void envelope_write(const envelope_t *envelope, buffer_t *buffer);

/* Returns the index of the body, or -1. */
ptrdiff_t envelope_read(envelope_t *envelope, const uint8_t *message, size_t length);

/* Appends a body. Returns false if it exceeds a limit. */
bool body_write(const body_t *body, buffer_t *buffer);

/* Reads a body of a kind, which is all of the bytes. Returns false if they are no such body. Free the body in both cases. */
bool body_read(body_t *body, kind_t kind, const uint8_t *bytes, size_t length);

void body_free(body_t *body);

#endif
