/* The caller's program: calls the service, and prints the results. The README has its options. */
#define _POSIX_C_SOURCE 200809L

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "modes.h"
#include "session.h"

typedef struct caller_stct
{
    session_t *session;
    encoding_t encoding;
    int64_t timeout_ns;
    int64_t next_correlation_id;
    buffer_t buffer;
}
caller_t;

static void check_result(session_result_t result, const char *action)
{
    if (SESSION_OK != result)
    {
        fail("%s: %s%s%s", session_result_name(result), action,
            SESSION_AERON == result ? ": " : "", SESSION_AERON == result ? session_error() : "");
    }
}

static session_result_t answer_callback(
    caller_t *caller, const envelope_t *request, const uint8_t *body, size_t length, int64_t deadline_ns)
{
    json_t *argument = body_read(KIND_INTEGER, request->encoding, body, length);
    if (NULL == argument)
    {
        return SESSION_MALFORMED_RESPONSE;
    }
    int64_t square;
    const bool is_answered = modes_square(json_integer_value(argument), &square);
    json_t *answer = is_answered ? json_integer(square) : json_sprintf(
        "no answer to %" JSON_INTEGER_FORMAT, json_integer_value(argument));
    json_decref(argument);
    const envelope_t envelope = {
        .template_id = TEMPLATE_CALLBACK_RESPONSE,
        .correlation_id = request->correlation_id,
        .code = is_answered ? STATUS_OK : STATUS_CALLBACK_FAILED,
        .encoding = request->encoding
    };
    envelope_write(&envelope, &caller->buffer);
    const bool is_written =
        body_write(is_answered ? KIND_INTEGER : KIND_TEXT, request->encoding, answer, &caller->buffer);
    json_decref(answer);
    return is_written ?
        session_send(caller->session, caller->buffer.bytes, caller->buffer.length, deadline_ns) :
        SESSION_INVALID_REQUEST;
}

/*
 * Calls an operation and waits for its result. On SESSION_OK, `status` is the server's, and `result` a new reference to
 * the result, or to the text of the error.
 */
static session_result_t call(
    caller_t *caller, const operation_t *operation, json_t *argument, uint8_t *status, json_t **result)
{
    const int64_t deadline_ns = session_now_ns() + caller->timeout_ns;
    const envelope_t request = {
        .template_id = TEMPLATE_REQUEST,
        .correlation_id = caller->next_correlation_id++,
        .code = operation->number,
        .encoding = (uint8_t)caller->encoding
    };
    envelope_write(&request, &caller->buffer);
    if (!body_write(operation->argument, caller->encoding, argument, &caller->buffer))
    {
        return SESSION_INVALID_REQUEST;
    }
    session_result_t session_result = session_send(
        caller->session, caller->buffer.bytes, caller->buffer.length, deadline_ns);
    while (SESSION_OK == session_result)
    {
        const uint8_t *message;
        size_t length;
        session_result = session_receive(caller->session, &message, &length, deadline_ns);
        if (SESSION_OK != session_result)
        {
            break;
        }
        envelope_t envelope;
        const ptrdiff_t body = envelope_read(&envelope, message, length);
        if (body < 0)
        {
            return SESSION_MALFORMED_RESPONSE;
        }
        if (envelope.correlation_id != request.correlation_id)
        {
            /* Responds to an earlier call, which has timed out. */
            continue;
        }
        if (TEMPLATE_CALLBACK_REQUEST == envelope.template_id)
        {
            session_result = answer_callback(caller, &envelope, message + body, length - (size_t)body, deadline_ns);
            continue;
        }
        if (TEMPLATE_RESPONSE != envelope.template_id || envelope.code >= STATUS_COUNT)
        {
            return SESSION_MALFORMED_RESPONSE;
        }
        *status = envelope.code;
        *result = body_read(
            STATUS_OK == envelope.code ? operation->result : KIND_TEXT,
            envelope.encoding,
            message + body,
            length - (size_t)body);
        return NULL == *result ? SESSION_MALFORMED_RESPONSE : SESSION_OK;
    }
    return session_result;
}

static void *connect_caller(const void *clientd, encoding_t encoding)
{
    const session_options_t *options = clientd;
    caller_t *caller = calloc(1, sizeof(caller_t));
    if (NULL == caller)
    {
        fail("out of memory");
    }
    *caller = (caller_t){ .encoding = encoding, .timeout_ns = options->timeout_ns, .next_correlation_id = 1 };
    check_result(session_connect(&caller->session, options), "connecting");
    return caller;
}

static json_t *call_or_fail(void *caller, const operation_t *operation, json_t *argument, uint8_t *status)
{
    json_t *result;
    check_result(call(caller, operation, argument, status, &result), operation->name);
    return result;
}

static void close_caller(void *clientd)
{
    caller_t *caller = clientd;
    session_close(caller->session);
    free(caller->buffer.bytes);
    free(caller);
}

/* Sends the message in LABEL HEX for each line. */
static void wrong_input(caller_t *caller, const char *path)
{
    FILE *file = modes_open_file(path);
    char *line = NULL, *hex;
    size_t capacity = 0;
    while (NULL != (hex = modes_read_line(file, &line, &capacity)))
    {
        const int64_t deadline_ns = session_now_ns() + caller->timeout_ns;
        caller->buffer.length = 0;
        for (; '\0' != hex[0] && '\0' != hex[1]; hex += 2)
        {
            const char digits[] = { hex[0], hex[1], '\0' };
            const uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);
            buffer_append(&caller->buffer, &byte, 1);
        }
        check_result(
            session_send(caller->session, caller->buffer.bytes, caller->buffer.length, deadline_ns), line);
        const uint8_t *message;
        size_t length;
        check_result(session_receive(caller->session, &message, &length, deadline_ns), line);
        envelope_t envelope;
        const ptrdiff_t body = envelope_read(&envelope, message, length);
        if (body < 0 || envelope.code >= STATUS_COUNT)
        {
            check_result(SESSION_MALFORMED_RESPONSE, line);
        }
        printf("%s %" PRId64 " %s", line, envelope.correlation_id, modes_status_name(envelope.code));
        if (STATUS_OK == envelope.code)
        {
            putchar(' ');
            for (size_t i = (size_t)body; i < length; i++)
            {
                printf("%02x", message[i]);
            }
        }
        putchar('\n');
    }
    free(line);
    fclose(file);
}

static void endless(caller_t *caller)
{
    json_t *argument = json_array();
    for (int i = 0; i < 10000; i++)
    {
        json_array_append_new(argument, json_integer(i));
    }
    for (bool is_first = true;; is_first = false)
    {
        uint8_t status;
        json_decref(call_or_fail(caller, modes_find_operation("total"), argument, &status));
        if (is_first)
        {
            puts("calling");
            fflush(stdout);
        }
    }
}

int main(int argc, char *argv[])
{
    enum { AERON_DIR = 1, REQUESTS, RESPONSES, TIMEOUT, IDLE, WRONG_INPUT, ENDLESS };
    static const struct option options[] = {
        MODES_OPTIONS,
        { "aeron-dir", required_argument, NULL, AERON_DIR },
        { "request-channel", required_argument, NULL, REQUESTS },
        { "response-channel", required_argument, NULL, RESPONSES },
        { "timeout-ms", required_argument, NULL, TIMEOUT },
        { "idle", required_argument, NULL, IDLE },
        { "wrong-input", required_argument, NULL, WRONG_INPUT },
        { "endless", no_argument, NULL, ENDLESS },
        { NULL, 0, NULL, 0 }
    };
    session_options_t session_options = {
        .aeron_dir = getenv("AERON_DIR"),
        .request_channel = REQUEST_CHANNEL,
        .response_channel = RESPONSE_CHANNEL,
        .idle = "backoff",
        .timeout_ns = INT64_C(5000000000)
    };
    modes_t modes = MODES_DEFAULTS;
    const char *wrong_input_path = NULL;
    bool is_endless = false;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
    {
        switch (option)
        {
            case AERON_DIR:
                session_options.aeron_dir = optarg;
                break;

            case REQUESTS:
                session_options.request_channel = optarg;
                break;

            case RESPONSES:
                session_options.response_channel = optarg;
                break;

            case TIMEOUT:
                session_options.timeout_ns = strtoll(optarg, NULL, 10) * 1000000;
                break;

            case IDLE:
                session_options.idle = optarg;
                break;

            case WRONG_INPUT:
                wrong_input_path = optarg;
                break;

            case ENDLESS:
                is_endless = true;
                break;

            default:
                if (!modes_option(&modes, option, optarg))
                {
                    return 2;
                }
        }
    }
    const transport_t transport = {
        .connect = connect_caller, .call = call_or_fail, .close = close_caller, .options = &session_options
    };
    if (modes_run(&modes, &transport))
    {
        return EXIT_SUCCESS;
    }
    if (NULL == wrong_input_path && !is_endless)
    {
        fputs("one of --check FILE, --wrong-input FILE, --measure BYTES, --connect-cycles N and --endless is required\n",
            stderr);
        return 2;
    }
    caller_t *caller = connect_caller(&session_options, modes.encoding);
    if (NULL != wrong_input_path)
    {
        wrong_input(caller, wrong_input_path);
    }
    else
    {
        endless(caller);
    }
    close_caller(caller);
    return EXIT_SUCCESS;
}
