/* The in-process caller's program: calls the service in its own process, over the C library. */
#include <getopt.h>
#include <stdlib.h>

#include "../../c/modes.h"
#include "../cross_language.h"

typedef struct connection_stct
{
    cross_language_session_t *session;
    encoding_t encoding;
    buffer_t argument;
}
connection_t;

static int32_t on_callback(void *context, int64_t argument, int64_t *answer)
{
    (void)context;
    return modes_square(argument, answer) ? 0 : 1;
}

static void *connect_in_process(const void *options, encoding_t encoding)
{
    (void)options;
    connection_t *connection = calloc(1, sizeof(connection_t));
    if (NULL == connection)
    {
        fail("out of memory");
    }
    connection->session = cross_language_session_new(on_callback, NULL);
    connection->encoding = encoding;
    return connection;
}

static json_t *call(void *clientd, const operation_t *operation, json_t *argument, uint8_t *status)
{
    connection_t *connection = clientd;
    connection->argument.length = 0;
    if (!body_write(operation->argument, connection->encoding, argument, &connection->argument))
    {
        fail("%s: the argument cannot be encoded", operation->name);
    }
    const uint8_t *bytes;
    size_t length;
    const int32_t called = cross_language_call(
        connection->session,
        operation->number,
        (uint8_t)connection->encoding,
        connection->argument.bytes,
        connection->argument.length,
        &bytes,
        &length);
    if (called < 0)
    {
        fail("%s: the library returned %d", operation->name, (int)called);
    }
    *status = (uint8_t)called;
    json_t *result = body_read(
        STATUS_OK == called ? operation->result : KIND_TEXT, (uint8_t)connection->encoding, bytes, length);
    if (NULL == result)
    {
        fail("%s: malformed result", operation->name);
    }
    return result;
}

static void close_connection(void *clientd)
{
    connection_t *connection = clientd;
    cross_language_session_free(connection->session);
    free(connection->argument.bytes);
    free(connection);
}

int main(int argc, char *argv[])
{
    static const struct option options[] = { MODES_OPTIONS, { NULL, 0, NULL, 0 } };
    modes_t modes = MODES_DEFAULTS;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
    {
        if (!modes_option(&modes, option, optarg))
        {
            return 2;
        }
    }
    const transport_t transport = { .connect = connect_in_process, .call = call, .close = close_connection };
    if (!modes_run(&modes, &transport))
    {
        fputs("one of --check FILE, --measure BYTES and --connect-cycles N is required\n", stderr);
        return 2;
    }
    return EXIT_SUCCESS;
}
