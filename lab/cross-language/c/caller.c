/* The caller's program: calls the service, and prints the results. The README has its options. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.pb-c.h"
#include "session.h"

/* The greatest argument that this program's callback accepts. */
#define CALLBACK_LIMIT 12

typedef Crosslanguage__Request request_t;
typedef Crosslanguage__Response response_t;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns an option's value, and removes the option. The words of the command line are pairs. */
static const char *option(char *argv[], const char *name, const char *default_value)
{
    for (char **word = argv + 1; NULL != *word && NULL != word[1]; word += 2)
    {
        if (0 == strcmp(*word, name))
        {
            const char *value = word[1];
            for (; NULL != *word; word++)
            {
                word[0] = word[2];
                if (NULL == word[0])
                {
                    break;
                }
            }
            return value;
        }
    }
    return default_value;
}

typedef struct caller_stct
{
    session_t *session;
    int64_t timeout_ns;
    int64_t next_correlation_id;
    uint8_t *buffer;
    size_t capacity;
}
caller_t;

static void check_result(session_result_t result, const char *action)
{
    static const char *const names[] = SESSION_RESULT_NAMES;
    if (SESSION_OK != result)
    {
        fail("%s: %s %s", names[result], action, SESSION_AERON == result ? session_error() : "");
    }
}

static caller_t caller_connect(const session_options_t *options)
{
    caller_t caller = { .timeout_ns = options->timeout_ns, .next_correlation_id = 1 };
    check_result(session_connect(&caller.session, options), "connecting");
    return caller;
}

static void caller_close(caller_t *caller)
{
    session_close(caller->session);
    free(caller->buffer);
}

static void *checked(void *memory)
{
    if (NULL == memory)
    {
        fail("out of memory");
    }
    return memory;
}

static void send_request(caller_t *caller, const request_t *request, int64_t deadline_ns)
{
    const size_t length = crosslanguage__request__get_packed_size(request);
    if (length > caller->capacity)
    {
        caller->buffer = checked(realloc(caller->buffer, length));
        caller->capacity = length;
    }
    crosslanguage__request__pack(request, caller->buffer);
    check_result(session_send(caller->session, caller->buffer, length, deadline_ns), "sending");
}

/* Answers with the square of a small integer. */
static void answer_callback(caller_t *caller, const response_t *callback, int64_t deadline_ns)
{
    static char refusal[] = "out of range";
    const int64_t argument = callback->callback_argument;
    request_t answer = CROSSLANGUAGE__REQUEST__INIT;
    answer.correlation_id = callback->correlation_id;
    if (argument >= 0 && argument <= CALLBACK_LIMIT)
    {
        answer.operation_case = CROSSLANGUAGE__REQUEST__OPERATION_CALLBACK_RESULT;
        answer.callback_result = argument * argument;
    }
    else
    {
        answer.operation_case = CROSSLANGUAGE__REQUEST__OPERATION_CALLBACK_ERROR;
        answer.callback_error = (ProtobufCBinaryData){ .len = sizeof(refusal) - 1, .data = (uint8_t *)refusal };
    }
    send_request(caller, &answer, deadline_ns);
}

/* Gives a request a correlation id, and waits for its result or failure. Free the response. */
static response_t *call(caller_t *caller, request_t *request)
{
    const int64_t deadline_ns = now_ns() + caller->timeout_ns;
    request->correlation_id = caller->next_correlation_id++;
    send_request(caller, request, deadline_ns);
    while (true)
    {
        const uint8_t *message;
        size_t length;
        check_result(session_receive(caller->session, &message, &length, deadline_ns), "receiving");
        response_t *response = crosslanguage__response__unpack(NULL, length, message);
        if (NULL == response)
        {
            check_result(SESSION_MALFORMED_RESPONSE, "receiving");
        }
        /*
         * Id 0 says that the server could not read the request. Any other id is that of an earlier
         * call, which has timed out.
         */
        if (response->correlation_id == request->correlation_id || 0 == response->correlation_id)
        {
            if (CROSSLANGUAGE__RESPONSE__OUTCOME__NOT_SET == response->outcome_case)
            {
                check_result(SESSION_MALFORMED_RESPONSE, "no known outcome");
            }
            if (CROSSLANGUAGE__RESPONSE__OUTCOME_CALLBACK_ARGUMENT != response->outcome_case)
            {
                return response;
            }
            answer_callback(caller, response, deadline_ns);
        }
        crosslanguage__response__free_unpacked(response, NULL);
    }
}

/*
 * Calls `ping`, or `reverse` with a text, and fails unless the response has the outcome of the
 * operation, and the expected text unless that is NULL.
 */
static void checked_call(caller_t *caller, request_t *request, const char *expected)
{
    response_t *response = call(caller, request);
    const ProtobufCBinaryData *text = &response->reverse;
    if (CROSSLANGUAGE__RESPONSE__OUTCOME_FAILURE == response->outcome_case)
    {
        const ProtobufCEnumValue *status =
            protobuf_c_enum_descriptor_get_value(&crosslanguage__status__descriptor, response->failure->status);
        text = &response->failure->text;
        fail("%s: %.*s", NULL == status ? "unknown status" : status->name, (int)text->len, (const char *)text->data);
    }
    if ((int)response->outcome_case != (int)request->operation_case)
    {
        fail("the outcome of another operation");
    }
    if (NULL != expected && (text->len != request->reverse.len || 0 != memcmp(text->data, expected, text->len)))
    {
        fail("wrong result");
    }
    crosslanguage__response__free_unpacked(response, NULL);
}

/* Calls with the request of each line, and prints the responses. Both are hexadecimal digits. */
static void check(const char *path, const session_options_t *options)
{
    caller_t caller = caller_connect(options);
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    if (NULL == file)
    {
        fail("%s: cannot be read", path);
    }
    while (getline(&line, &capacity, file) > 0)
    {
        size_t length = strspn(line, "0123456789abcdefABCDEF");
        if (0 != length % 2 || ('\n' != line[length] && '\0' != line[length]))
        {
            fail("%s: a line is not hexadecimal digits", path);
        }
        length /= 2;
        for (size_t i = 0; i < length; i++)
        {
            const char pair[] = { line[2 * i], line[2 * i + 1], '\0' };
            line[i] = (char)strtoul(pair, NULL, 16);
        }
        request_t *request = crosslanguage__request__unpack(NULL, length, (const uint8_t *)line);
        if (NULL == request)
        {
            fail("%s: a line is no request", path);
        }
        response_t *response = call(&caller, request);
        length = crosslanguage__response__get_packed_size(response);
        uint8_t *bytes = checked(malloc(length));
        crosslanguage__response__pack(response, bytes);
        for (size_t i = 0; i < length; i++)
        {
            printf("%02x", bytes[i]);
        }
        puts("");
        free(bytes);
        crosslanguage__request__free_unpacked(request, NULL);
        crosslanguage__response__free_unpacked(response, NULL);
    }
    free(line);
    fclose(file);
    caller_close(&caller);
}

static request_t ping(void)
{
    static Crosslanguage__Void nothing = CROSSLANGUAGE__VOID__INIT;
    request_t request = CROSSLANGUAGE__REQUEST__INIT;
    request.operation_case = CROSSLANGUAGE__REQUEST__OPERATION_PING;
    request.ping = &nothing;
    return request;
}

typedef struct measurement_stct
{
    const session_options_t *options;
    size_t payload;
    size_t calls;
    int64_t warmup_ns;
    /* Of all callers and the main thread. */
    pthread_barrier_t barrier;
}
measurement_t;

typedef struct measured_caller_stct
{
    measurement_t *measurement;
    pthread_t thread;
    int64_t *times;
    int64_t end;
}
measured_caller_t;

/* A concurrent caller: connects, warms up, and after a common beginning times its calls. */
static void *run_caller(void *clientd)
{
    measured_caller_t *measured = clientd;
    measurement_t *measurement = measured->measurement;
    const size_t payload = measurement->payload;
    caller_t caller = caller_connect(measurement->options);
    char *text = checked(malloc(payload + 1)), *reversed = checked(malloc(payload + 1));
    for (size_t i = 0; i < payload; i++)
    {
        text[i] = reversed[payload - 1 - i] = (char)('a' + i % 26);
    }
    request_t request = ping();
    if (payload > 0)
    {
        request.operation_case = CROSSLANGUAGE__REQUEST__OPERATION_REVERSE;
        request.reverse = (ProtobufCBinaryData){ .len = payload, .data = (uint8_t *)text };
    }
    checked_call(&caller, &request, payload > 0 ? reversed : NULL);
    for (const int64_t warm = now_ns() + measurement->warmup_ns; now_ns() < warm;)
    {
        checked_call(&caller, &request, NULL);
    }
    /* All are ready, and begin. */
    pthread_barrier_wait(&measurement->barrier);
    pthread_barrier_wait(&measurement->barrier);
    for (size_t i = 0; i < measurement->calls; i++)
    {
        const int64_t start = now_ns();
        checked_call(&caller, &request, NULL);
        measured->times[i] = now_ns() - start;
    }
    measured->end = now_ns();
    free(text);
    free(reversed);
    caller_close(&caller);
    return NULL;
}

/*
 * Prints the time of all calls, and of each, in nanoseconds. Flushes the first line at once,
 * because the program `measure` samples this process when that line arrives.
 */
static void report(int64_t elapsed, const int64_t *times, size_t count)
{
    printf("%" PRId64 "\n", elapsed);
    fflush(stdout);
    for (size_t i = 0; i < count; i++)
    {
        printf("%" PRId64 "\n", times[i]);
    }
}

static void measure(measurement_t *measurement, size_t callers)
{
    measured_caller_t *measured = checked(calloc(callers, sizeof(measured_caller_t)));
    int64_t *times = checked(calloc(callers * measurement->calls, sizeof(int64_t)));
    pthread_barrier_init(&measurement->barrier, NULL, (unsigned)callers + 1);
    for (size_t i = 0; i < callers; i++)
    {
        measured[i].measurement = measurement;
        measured[i].times = times + i * measurement->calls;
        if (0 != pthread_create(&measured[i].thread, NULL, run_caller, &measured[i]))
        {
            fail("no thread");
        }
    }
    pthread_barrier_wait(&measurement->barrier);
    puts("measuring");
    fflush(stdout);
    /* Before the callers begin: afterwards, this thread may have to wait for a core. */
    const int64_t start = now_ns();
    int64_t end = start;
    pthread_barrier_wait(&measurement->barrier);
    for (size_t i = 0; i < callers; i++)
    {
        pthread_join(measured[i].thread, NULL);
        end = measured[i].end > end ? measured[i].end : end;
    }
    report(end - start, times, callers * measurement->calls);
    pthread_barrier_destroy(&measurement->barrier);
    free(measured);
    free(times);
}

/* Connects, calls `ping` and closes, again and again. */
static void connect_cycles(size_t cycles, const session_options_t *options)
{
    int64_t *times = checked(calloc(cycles, sizeof(int64_t)));
    request_t request = ping();
    const int64_t begin = now_ns();
    for (size_t i = 0; i < cycles; i++)
    {
        const int64_t start = now_ns();
        caller_t caller = caller_connect(options);
        checked_call(&caller, &request, NULL);
        caller_close(&caller);
        times[i] = now_ns() - start;
    }
    report(now_ns() - begin, times, cycles);
    free(times);
}

int main(int argc, char *argv[])
{
    (void)argc;
    const session_options_t options = {
        .aeron_dir = option(argv, "--aeron-dir", getenv("AERON_DIR")),
        .request_channel = option(argv, "--request-channel", REQUEST_CHANNEL),
        .response_channel = option(argv, "--response-channel", RESPONSE_CHANNEL),
        .idle = option(argv, "--idle", "backoff"),
        .timeout_ns = strtoll(option(argv, "--timeout-ms", "5000"), NULL, 10) * 1000000
    };
    const char *cases = option(argv, "--check", NULL), *payload = option(argv, "--measure", NULL);
    const char *cycles = option(argv, "--connect-cycles", NULL);
    const size_t callers = strtoul(option(argv, "--callers", "1"), NULL, 10);
    measurement_t measurement = {
        .options = &options,
        .payload = NULL == payload ? 0 : strtoul(payload, NULL, 10),
        .calls = strtoul(option(argv, "--calls", "10000"), NULL, 10),
        .warmup_ns = strtoll(option(argv, "--warmup-ms", "5000"), NULL, 10) * 1000000
    };
    if (NULL != argv[1] || 1 != (NULL != cases) + (NULL != payload) + (NULL != cycles))
    {
        fprintf(stderr, "%s\n", NULL != argv[1] ? argv[1] : "one of --check, --measure and --connect-cycles");
        return 2;
    }
    if (NULL != cases)
    {
        check(cases, &options);
    }
    else if (NULL != payload)
    {
        measure(&measurement, callers);
    }
    else
    {
        connect_cycles(strtoul(cycles, NULL, 10), &options);
    }
    return EXIT_SUCCESS;
}
