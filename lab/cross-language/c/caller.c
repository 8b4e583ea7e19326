/* The caller's program: calls the service, and prints the results. The README has its options. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "body.h"
#include "session.h"

/* The greatest argument that this program's callback accepts. */
#define CALLBACK_LIMIT 12

static const struct operation_stct
{
    const char *name;
    kind_t argument;
    kind_t result;
}
OPERATIONS[] = {
    { "ping", KIND_VOID, KIND_VOID },
    { "successor", KIND_INTEGER, KIND_INTEGER },
    { "reverse", KIND_TEXT, KIND_TEXT },
    { "running_sums", KIND_INTEGERS, KIND_INTEGERS },
    { "create", KIND_CREATE_OBJECT, KIND_OBJECT_VALUE },
    { "call", KIND_CALL_OBJECT, KIND_OBJECT_VALUE },
    { "callback", KIND_INTEGER, KIND_INTEGER },
    { "transform", KIND_VALUE, KIND_VALUE },
    { "total", KIND_INTEGERS, KIND_INTEGER },
    { "squares", KIND_INTEGER, KIND_INTEGERS },
    { "transform_all", KIND_VALUE, KIND_VALUE },
};
#define OPERATION_COUNT (sizeof(OPERATIONS) / sizeof(OPERATIONS[0]))

typedef enum status_en
{
    STATUS_OK = 0,
    STATUS_CALLBACK_FAILED = 7,
    STATUS_COUNT = 10
}
status_t;

static const char *const STATUS_NAMES[STATUS_COUNT] = {
    "OK", "MALFORMED_MESSAGE", "UNKNOWN_OPERATION", "MALFORMED_BODY", "INVALID_ARGUMENT", "UNKNOWN_OBJECT",
    "UNKNOWN_CALL", "CALLBACK_FAILED", "RESPONSE_TOO_LONG", "LIMIT_REACHED",
};

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
    buffer_t buffer;
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
    free(caller->buffer.bytes);
}

static void send_message(caller_t *caller, const envelope_t *envelope, const body_t *body, int64_t deadline_ns)
{
    envelope_write(envelope, &caller->buffer);
    check_result(
        body_write(body, &caller->buffer) ?
            session_send(caller->session, caller->buffer.bytes, caller->buffer.length, deadline_ns) :
            SESSION_INVALID_REQUEST,
        "sending");
}

/* Answers with the square of a small integer. */
static void answer_callback(caller_t *caller, const envelope_t *request, int64_t argument, int64_t deadline_ns)
{
    static char refusal[] = "out of range";
    const bool is_answered = argument >= 0 && argument <= CALLBACK_LIMIT;
    const envelope_t envelope = {
        .template_id = TEMPLATE_CALLBACK_RESPONSE,
        .correlation_id = request->correlation_id,
        .code = is_answered ? STATUS_OK : STATUS_CALLBACK_FAILED
    };
    const body_t body = {
        .kind = is_answered ? KIND_INTEGER : KIND_TEXT,
        .fields = { argument * (is_answered ? argument : 0) },
        .text = { .bytes = refusal, .length = sizeof(refusal) - 1 }
    };
    send_message(caller, &envelope, &body, deadline_ns);
}

/* Calls an operation and waits for its result, or for the text of an error. Returns the status. */
static status_t call(caller_t *caller, size_t operation, const body_t *argument, body_t *result)
{
    const int64_t deadline_ns = now_ns() + caller->timeout_ns;
    const envelope_t request = {
        .template_id = TEMPLATE_REQUEST,
        .correlation_id = caller->next_correlation_id++,
        .code = (uint8_t)(operation + 1)
    };
    send_message(caller, &request, argument, deadline_ns);
    while (true)
    {
        const uint8_t *message;
        size_t length;
        check_result(
            session_receive(caller->session, &message, &length, deadline_ns), OPERATIONS[operation].name);
        envelope_t envelope;
        const ptrdiff_t body = envelope_read(&envelope, message, length);
        if (body >= 0 && envelope.correlation_id != request.correlation_id)
        {
            /* Responds to an earlier call, which has timed out. */
            continue;
        }
        const bool is_callback = body >= 0 && TEMPLATE_CALLBACK_REQUEST == envelope.template_id;
        const bool is_response =
            body >= 0 && TEMPLATE_RESPONSE == envelope.template_id && envelope.code < STATUS_COUNT;
        const kind_t kind = is_callback ? KIND_INTEGER :
            is_response && STATUS_OK == envelope.code ? OPERATIONS[operation].result : KIND_TEXT;
        if ((!is_callback && !is_response) || !body_read(result, kind, message + body, length - (size_t)body))
        {
            check_result(SESSION_MALFORMED_RESPONSE, OPERATIONS[operation].name);
        }
        if (is_response)
        {
            return (status_t)envelope.code;
        }
        const int64_t value = result->fields[0];
        body_free(result);
        answer_callback(caller, &envelope, value, deadline_ns);
    }
}

/* Calls, and fails unless the result is the expected one. */
static void checked_call(caller_t *caller, size_t operation, const body_t *argument, const char *expected)
{
    body_t result;
    if (STATUS_OK != call(caller, operation, argument, &result) ||
        (NULL != expected && (result.text.length != argument->text.length ||
            0 != memcmp(result.text.bytes, expected, result.text.length))))
    {
        fail("%s: wrong result", OPERATIONS[operation].name);
    }
    body_free(&result);
}

/* Calls OPERATION ARGUMENT for each line, and prints the results. Bodies are hexadecimal digits. */
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
        char *digits = strchr(line, ' ');
        if (NULL == digits)
        {
            fail("a line of one word: %s", line);
        }
        *digits++ = '\0';
        size_t operation = 0;
        while (operation < OPERATION_COUNT && 0 != strcmp(line, OPERATIONS[operation].name))
        {
            operation++;
        }
        const size_t length = strspn(digits, "0123456789abcdef") / 2;
        for (size_t i = 0; i < length; i++)
        {
            const char pair[] = { digits[2 * i], digits[2 * i + 1], '\0' };
            digits[i] = (char)strtoul(pair, NULL, 16);
        }
        body_t argument, result;
        if (OPERATION_COUNT == operation ||
            !body_read(&argument, OPERATIONS[operation].argument, (const uint8_t *)digits, length))
        {
            fail("no such operation, or argument: %s", line);
        }
        const status_t status = call(&caller, operation, &argument, &result);
        if (STATUS_OK == status)
        {
            buffer_t bytes = { .length = 0 };
            body_write(&result, &bytes);
            for (size_t i = 0; i < bytes.length; i++)
            {
                printf("%02x", bytes.bytes[i]);
            }
            free(bytes.bytes);
        }
        puts(STATUS_OK == status ? "" : STATUS_NAMES[status]);
        body_free(&argument);
        body_free(&result);
    }
    free(line);
    fclose(file);
    caller_close(&caller);
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
    const size_t payload = measurement->payload, operation = 0 == payload ? 0 : 2;
    caller_t caller = caller_connect(measurement->options);
    char *text = malloc(payload + 1), *reversed = malloc(payload + 1);
    if (NULL == text || NULL == reversed)
    {
        fail("out of memory");
    }
    for (size_t i = 0; i < payload; i++)
    {
        text[i] = reversed[payload - 1 - i] = (char)('a' + i % 26);
    }
    const body_t argument = { .kind = OPERATIONS[operation].argument, .text = { .bytes = text, .length = payload } };
    checked_call(&caller, operation, &argument, payload > 0 ? reversed : NULL);
    for (const int64_t warm = now_ns() + measurement->warmup_ns; now_ns() < warm;)
    {
        checked_call(&caller, operation, &argument, NULL);
    }
    /* All are ready, and begin. */
    pthread_barrier_wait(&measurement->barrier);
    pthread_barrier_wait(&measurement->barrier);
    for (size_t i = 0; i < measurement->calls; i++)
    {
        const int64_t start = now_ns();
        checked_call(&caller, operation, &argument, NULL);
        measured->times[i] = now_ns() - start;
    }
    measured->end = now_ns();
    free(text);
    free(reversed);
    caller_close(&caller);
    return NULL;
}

/* Prints a line of JSON, and writes the samples. */
static void report(const char *path, int64_t elapsed, const int64_t *times, size_t count)
{
    printf("{\"elapsed_ns\":%" PRId64 ",\"calls\":%zu}\n", elapsed, count);
    fflush(stdout);
    FILE *file = NULL == path ? NULL : fopen(path, "w");
    for (size_t i = 0; NULL != file && i < count; i++)
    {
        fprintf(file, "%" PRId64 "\n", times[i]);
    }
    if (NULL != path && (NULL == file || 0 != fclose(file)))
    {
        fail("%s: cannot be written", path);
    }
}

static void measure(measurement_t *measurement, size_t callers, const char *samples)
{
    measured_caller_t *measured = calloc(callers, sizeof(measured_caller_t));
    int64_t *times = calloc(callers * measurement->calls, sizeof(int64_t));
    if (NULL == measured || NULL == times ||
        0 != pthread_barrier_init(&measurement->barrier, NULL, (unsigned)callers + 1))
    {
        fail("out of memory");
    }
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
    report(samples, end - start, times, callers * measurement->calls);
    pthread_barrier_destroy(&measurement->barrier);
    free(measured);
    free(times);
}

/* Connects, calls `ping` and closes, again and again. */
static void connect_cycles(size_t cycles, const session_options_t *options, const char *samples)
{
    int64_t *times = calloc(cycles, sizeof(int64_t));
    if (NULL == times)
    {
        fail("out of memory");
    }
    const body_t argument = { .kind = KIND_VOID };
    const int64_t begin = now_ns();
    for (size_t i = 0; i < cycles; i++)
    {
        const int64_t start = now_ns();
        caller_t caller = caller_connect(options);
        checked_call(&caller, 0, &argument, NULL);
        caller_close(&caller);
        times[i] = now_ns() - start;
    }
    report(samples, now_ns() - begin, times, cycles);
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
    const char *cycles = option(argv, "--connect-cycles", NULL), *samples = option(argv, "--samples", NULL);
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
        measure(&measurement, callers, samples);
    }
    else
    {
        connect_cycles(strtoul(cycles, NULL, 10), &options, samples);
    }
    return EXIT_SUCCESS;
}
