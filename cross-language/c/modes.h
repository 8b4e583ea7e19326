/*
 * The modes of a caller's program that are equal over all transports: checking, measuring, connecting. A failure ends the
 * program.
 */
#ifndef CROSS_LANGUAGE_MODES_H
#define CROSS_LANGUAGE_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "body.h"

#define STATUS_OK 0
#define STATUS_CALLBACK_FAILED 8
#define STATUS_COUNT 11

typedef struct operation_stct
{
    const char *name;
    uint8_t number;
    kind_t argument;
    kind_t result;
}
operation_t;

/* A way to a server. Each thread has connections of its own. */
typedef struct transport_stct
{
    void *(*connect)(const void *options, encoding_t encoding);
    /* Calls an operation. Returns a new reference to the result, or to the text of the error, and sets the status. */
    json_t *(*call)(void *connection, const operation_t *operation, json_t *argument, uint8_t *status);
    void (*close)(void *connection);
    /* Of `connect`. */
    const void *options;
}
transport_t;

typedef struct modes_stct
{
    encoding_t encoding;
    const char *check;
    bool is_measuring;
    size_t payload;
    size_t connect_cycles;
    size_t calls;
    size_t warmup_ms;
    size_t counted_ms;
    size_t callers;
    const char *samples;
}
modes_t;

#define MODES_DEFAULTS { .encoding = ENCODING_BINARY, .calls = 10000, .warmup_ms = 6000, .callers = 1 }

/* Entries of an array of `struct option`, and their handler, which returns false for other options. */
#define MODES_OPTIONS \
    { "encoding", required_argument, NULL, 'e' }, \
    { "check", required_argument, NULL, 'k' }, \
    { "measure", required_argument, NULL, 'm' }, \
    { "connect-cycles", required_argument, NULL, 'c' }, \
    { "calls", required_argument, NULL, 'n' }, \
    { "warmup-ms", required_argument, NULL, 'w' }, \
    { "counted-ms", required_argument, NULL, 'd' }, \
    { "callers", required_argument, NULL, 't' }, \
    { "samples", required_argument, NULL, 's' }
bool modes_option(modes_t *modes, int option, const char *argument);

/* Runs the chosen mode. Returns false if none is chosen. */
bool modes_run(const modes_t *modes, const transport_t *transport);

/* Answers a callback of a caller's program with the square of a small integer. Returns false for others. */
bool modes_square(int64_t argument, int64_t *answer);

const operation_t *modes_find_operation(const char *name);

const char *modes_status_name(uint8_t status);

/* Ends the program with an error. */
void fail(const char *format, ...);

FILE *modes_open_file(const char *path);

/* Reads a line without its end, and splits it at its first blank. Returns the second part, or NULL at the end. */
char *modes_read_line(FILE *file, char **line, size_t *capacity);

#endif
