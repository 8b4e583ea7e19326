/* The caller's program: calls the service, and prints the results. The README has its options. */
#define _POSIX_C_SOURCE 200809L

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "session.h"

/* The greatest argument that this program's callback accepts. */
#define CALLBACK_LIMIT 12
/* Longer results are printed as their length and hash. */
#define RESULT_LIMIT 120

typedef struct operation_stct
{
    const char *name;
    uint8_t number;
    kind_t argument;
    kind_t result;
}
operation_t;

static const operation_t OPERATIONS[] = {
    { "ping", 1, KIND_VOID, KIND_VOID },
    { "successor", 2, KIND_INTEGER, KIND_INTEGER },
    { "reverse", 3, KIND_TEXT, KIND_TEXT },
    { "running_sums", 4, KIND_INTEGERS, KIND_INTEGERS },
    { "create", 5, KIND_CREATE_OBJECT, KIND_OBJECT_VALUE },
    { "call", 6, KIND_CALL_OBJECT, KIND_OBJECT_VALUE },
    { "callback", 7, KIND_INTEGER, KIND_INTEGER },
    { "transform", 8, KIND_VALUE, KIND_VALUE },
    { "total", 9, KIND_INTEGERS, KIND_INTEGER },
    { "squares", 10, KIND_INTEGER, KIND_INTEGERS },
    { "transform_all", 11, KIND_VALUE, KIND_VALUE },
};

static const char *const STATUS_NAMES[] = {
    "OK",
    "MALFORMED_MESSAGE",
    "UNKNOWN_OPERATION",
    "UNKNOWN_ENCODING",
    "MALFORMED_BODY",
    "INVALID_ARGUMENT",
    "UNKNOWN_OBJECT",
    "UNKNOWN_CALL",
    "CALLBACK_FAILED",
    "RESPONSE_TOO_LONG",
    "LIMIT_REACHED",
};
#define STATUS_COUNT (sizeof(STATUS_NAMES) / sizeof(STATUS_NAMES[0]))
#define STATUS_OK 0
#define STATUS_CALLBACK_FAILED 8

typedef struct caller_stct
{
    session_t *session;
    encoding_t encoding;
    int64_t timeout_ns;
    int64_t next_correlation_id;
    buffer_t buffer;
}
caller_t;

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

static void check_result(session_result_t result, const char *action)
{
    if (SESSION_OK != result)
    {
        fail("%s: %s%s%s", session_result_name(result), action,
            SESSION_AERON == result ? ": " : "", SESSION_AERON == result ? session_error() : "");
    }
}

/* The function of this program that the server calls back: the square, or NULL and a text. */
static json_t *on_callback(json_int_t argument, json_t **text)
{
    if (argument < 0 || argument > CALLBACK_LIMIT)
    {
        *text = json_sprintf("%" JSON_INTEGER_FORMAT " is not in 0 to %d", argument, CALLBACK_LIMIT);
        return NULL;
    }
    return json_integer(argument * argument);
}

static session_result_t answer_callback(
    caller_t *caller, const envelope_t *request, const uint8_t *body, size_t length, int64_t deadline_ns)
{
    json_t *argument = body_read(KIND_INTEGER, request->encoding, body, length);
    if (NULL == argument)
    {
        return SESSION_MALFORMED_RESPONSE;
    }
    json_t *text = NULL;
    json_t *answer = on_callback(json_integer_value(argument), &text);
    json_decref(argument);
    const envelope_t envelope = {
        .template_id = TEMPLATE_CALLBACK_RESPONSE,
        .correlation_id = request->correlation_id,
        .code = NULL == answer ? STATUS_CALLBACK_FAILED : STATUS_OK,
        .encoding = request->encoding
    };
    envelope_write(&envelope, &caller->buffer);
    const bool is_written = NULL == answer ?
        body_write(KIND_TEXT, request->encoding, text, &caller->buffer) :
        body_write(KIND_INTEGER, request->encoding, answer, &caller->buffer);
    json_decref(answer);
    json_decref(text);
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

/* Prints a text, or its length and FNV-1a hash. */
static void print_shortened(const buffer_t *text)
{
    if (text->has_failed)
    {
        fail("out of memory");
    }
    if (text->length <= RESULT_LIMIT)
    {
        fwrite(text->bytes, 1, text->length, stdout);
        return;
    }
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text->length; i++)
    {
        hash = (hash ^ text->bytes[i]) * 0x100000001b3u;
    }
    printf("%zu bytes %016" PRIx64, text->length, hash);
}

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (NULL == file)
    {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return file;
}

/* Reads a line without its end, and splits it at its first blank. Returns the second part, or NULL at the end. */
static char *read_line(FILE *file, char **line, size_t *capacity)
{
    const ssize_t length = getline(line, capacity, file);
    if (length < 0)
    {
        return NULL;
    }
    (*line)[strcspn(*line, "\n")] = '\0';
    char *blank = strchr(*line, ' ');
    if (NULL == blank)
    {
        fail("a line of one word: %s", *line);
    }
    *blank = '\0';
    return blank + 1;
}

static const operation_t *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof(OPERATIONS) / sizeof(OPERATIONS[0]); i++)
    {
        if (0 == strcmp(name, OPERATIONS[i].name))
        {
            return &OPERATIONS[i];
        }
    }
    fail("no such operation: %s", name);
    return NULL;
}

/* Calls OPERATION ARGUMENT, the argument in JSON, for each line. */
static void check(caller_t *caller, const char *path)
{
    FILE *file = open_file(path);
    char *line = NULL, *text;
    size_t capacity = 0;
    buffer_t canonical = { .length = 0 };
    for (unsigned number = 1; NULL != (text = read_line(file, &line, &capacity)); number++)
    {
        const operation_t *operation = find_operation(line);
        json_t *argument = body_read_json(text, strlen(text));
        if (NULL == argument)
        {
            fail("line %u: no JSON", number);
        }
        uint8_t status;
        json_t *result;
        check_result(call(caller, operation, argument, &status, &result), operation->name);
        json_decref(argument);
        printf("%u %s ", number, operation->name);
        if (STATUS_OK == status)
        {
            canonical.length = 0;
            body_canonical(result, &canonical);
            print_shortened(&canonical);
        }
        else
        {
            fputs(STATUS_NAMES[status], stdout);
        }
        putchar('\n');
        json_decref(result);
    }
    free(canonical.bytes);
    free(line);
    fclose(file);
}

/* Sends the message in LABEL HEX for each line. */
static void wrong_input(caller_t *caller, const char *path)
{
    FILE *file = open_file(path);
    char *line = NULL, *hex;
    size_t capacity = 0;
    while (NULL != (hex = read_line(file, &line, &capacity)))
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
        printf("%s %" PRId64 " %s", line, envelope.correlation_id, STATUS_NAMES[envelope.code]);
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

typedef struct measurement_stct
{
    const session_options_t *session_options;
    encoding_t encoding;
    size_t payload;
    size_t calls;
    size_t warmup;
    size_t callers;
    const char *samples;
    /* Of all callers and the main thread, before and after the timed calls. */
    pthread_barrier_t barrier;
}
measurement_t;

typedef struct measured_caller_stct
{
    measurement_t *measurement;
    pthread_t thread;
    int64_t *times;
}
measured_caller_t;

static void connect_caller(caller_t *caller, const session_options_t *options, encoding_t encoding)
{
    *caller = (caller_t){ .encoding = encoding, .timeout_ns = options->timeout_ns, .next_correlation_id = 1 };
    check_result(session_connect(&caller->session, options), "connecting");
}

static void close_caller(caller_t *caller)
{
    session_close(caller->session);
    free(caller->buffer.bytes);
}

static json_t *checked_call(caller_t *caller, const operation_t *operation, json_t *argument)
{
    uint8_t status;
    json_t *result;
    check_result(call(caller, operation, argument, &status, &result), operation->name);
    if (STATUS_OK != status)
    {
        fail("%s: %s", operation->name, STATUS_NAMES[status]);
    }
    return result;
}

/* A concurrent caller: connects, warms up, awaits the common beginning, and times its calls. */
static void *run_caller(void *clientd)
{
    measured_caller_t *measured = clientd;
    measurement_t *measurement = measured->measurement;
    const size_t payload = measurement->payload;
    caller_t caller;
    connect_caller(&caller, measurement->session_options, measurement->encoding);
    const operation_t *operation = find_operation(0 == payload ? "ping" : "reverse");
    char *text = malloc(payload + 1), *reversed = malloc(payload + 1);
    if (NULL == text || NULL == reversed)
    {
        fail("out of memory");
    }
    for (size_t i = 0; i < payload; i++)
    {
        text[i] = reversed[payload - 1 - i] = (char)('a' + i % 26);
    }
    json_t *argument = 0 == payload ? json_null() : json_stringn(text, payload);
    json_t *expected = 0 == payload ? json_null() : json_stringn(reversed, payload);
    json_t *result = checked_call(&caller, operation, argument);
    if (!json_equal(result, expected))
    {
        fail("%s: wrong result", operation->name);
    }
    json_decref(result);
    for (size_t i = 0; i < measurement->warmup; i++)
    {
        json_decref(checked_call(&caller, operation, argument));
    }
    pthread_barrier_wait(&measurement->barrier);
    for (size_t i = 0; i < measurement->calls; i++)
    {
        const int64_t start = session_now_ns();
        json_decref(checked_call(&caller, operation, argument));
        measured->times[i] = session_now_ns() - start;
    }
    pthread_barrier_wait(&measurement->barrier);
    json_decref(argument);
    json_decref(expected);
    free(text);
    free(reversed);
    close_caller(&caller);
    return NULL;
}

static void write_samples(const char *path, const int64_t *times, size_t count)
{
    FILE *file = NULL == path ? NULL : fopen(path, "w");
    if (NULL == file)
    {
        if (NULL != path)
        {
            perror(path);
            exit(EXIT_FAILURE);
        }
        return;
    }
    for (size_t i = 0; i < count; i++)
    {
        fprintf(file, "%" PRId64 "\n", times[i]);
    }
    if (0 != fclose(file))
    {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static void print_measured(int64_t elapsed_ns, size_t calls)
{
    printf("{\"elapsed_ns\":%" PRId64 ",\"calls\":%zu,"
        "\"allocations_per_call\":null,\"allocated_bytes_per_call\":null}\n", elapsed_ns, calls);
}

/* Times the calls of concurrent callers. */
static void measure(measurement_t *measurement)
{
    const size_t callers = measurement->callers, calls = measurement->calls;
    measured_caller_t *measured = calloc(callers, sizeof(measured_caller_t));
    int64_t *times = calloc(callers * calls, sizeof(int64_t));
    if (NULL == measured || NULL == times ||
        0 != pthread_barrier_init(&measurement->barrier, NULL, (unsigned)callers + 1))
    {
        fail("out of memory");
    }
    for (size_t i = 0; i < callers; i++)
    {
        measured[i].measurement = measurement;
        measured[i].times = times + i * calls;
        if (0 != pthread_create(&measured[i].thread, NULL, run_caller, &measured[i]))
        {
            fail("no thread");
        }
    }
    pthread_barrier_wait(&measurement->barrier);
    const int64_t start = session_now_ns();
    pthread_barrier_wait(&measurement->barrier);
    const int64_t elapsed = session_now_ns() - start;
    for (size_t i = 0; i < callers; i++)
    {
        pthread_join(measured[i].thread, NULL);
    }
    print_measured(elapsed, callers * calls);
    write_samples(measurement->samples, times, callers * calls);
    pthread_barrier_destroy(&measurement->barrier);
    free(measured);
    free(times);
}

/* Connects, calls `ping` and closes, again and again. */
static void connect_cycles(const measurement_t *measurement, size_t cycles)
{
    int64_t *times = calloc(cycles, sizeof(int64_t));
    json_t *argument = json_null();
    if (NULL == times)
    {
        fail("out of memory");
    }
    const int64_t begin = session_now_ns();
    for (size_t i = 0; i < cycles; i++)
    {
        const int64_t start = session_now_ns();
        caller_t caller;
        connect_caller(&caller, measurement->session_options, measurement->encoding);
        json_decref(checked_call(&caller, find_operation("ping"), argument));
        close_caller(&caller);
        times[i] = session_now_ns() - start;
    }
    print_measured(session_now_ns() - begin, cycles);
    write_samples(measurement->samples, times, cycles);
    json_decref(argument);
    free(times);
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
        json_t *result;
        check_result(call(caller, find_operation("total"), argument, &status, &result), "total");
        json_decref(result);
        if (is_first)
        {
            puts("calling");
            fflush(stdout);
        }
    }
}

int main(int argc, char *argv[])
{
    enum
    {
        AERON_DIR = 1, REQUESTS, RESPONSES, ENCODING, TIMEOUT, IDLE, CALLS, WARMUP, CALLERS, SAMPLES,
        CHECK, WRONG_INPUT, MEASURE, CONNECT_CYCLES, ENDLESS
    };
    static const struct option options[] = {
        { "aeron-dir", required_argument, NULL, AERON_DIR },
        { "request-channel", required_argument, NULL, REQUESTS },
        { "response-channel", required_argument, NULL, RESPONSES },
        { "encoding", required_argument, NULL, ENCODING },
        { "timeout-ms", required_argument, NULL, TIMEOUT },
        { "idle", required_argument, NULL, IDLE },
        { "check", required_argument, NULL, CHECK },
        { "wrong-input", required_argument, NULL, WRONG_INPUT },
        { "measure", required_argument, NULL, MEASURE },
        { "connect-cycles", required_argument, NULL, CONNECT_CYCLES },
        { "calls", required_argument, NULL, CALLS },
        { "warmup", required_argument, NULL, WARMUP },
        { "callers", required_argument, NULL, CALLERS },
        { "samples", required_argument, NULL, SAMPLES },
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
    measurement_t measurement = {
        .session_options = &session_options, .encoding = ENCODING_BINARY, .calls = 10000, .warmup = 10000, .callers = 1
    };
    const char *path = NULL;
    int mode = 0;
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

            case ENCODING:
                if (0 == strcmp(optarg, "json"))
                {
                    measurement.encoding = ENCODING_JSON;
                }
                else if (0 != strcmp(optarg, "binary"))
                {
                    fail("no such encoding: %s", optarg);
                }
                break;

            case TIMEOUT:
                session_options.timeout_ns = strtoll(optarg, NULL, 10) * 1000000;
                break;

            case IDLE:
                session_options.idle = optarg;
                break;

            case CALLS:
                measurement.calls = strtoul(optarg, NULL, 10);
                break;

            case WARMUP:
                measurement.warmup = strtoul(optarg, NULL, 10);
                break;

            case CALLERS:
                measurement.callers = strtoul(optarg, NULL, 10);
                break;

            case SAMPLES:
                measurement.samples = optarg;
                break;

            case CHECK:
            case WRONG_INPUT:
            case MEASURE:
            case CONNECT_CYCLES:
            case ENDLESS:
                mode = option;
                path = optarg;
                break;

            default:
                return 2;
        }
    }
    if (0 == mode || 0 == measurement.calls || 0 == measurement.callers)
    {
        fputs("one of --check FILE, --wrong-input FILE, --measure BYTES, --connect-cycles N and --endless is required\n",
            stderr);
        return 2;
    }
    if (MEASURE == mode)
    {
        measurement.payload = strtoul(path, NULL, 10);
        measure(&measurement);
        return EXIT_SUCCESS;
    }
    if (CONNECT_CYCLES == mode)
    {
        connect_cycles(&measurement, strtoul(path, NULL, 10));
        return EXIT_SUCCESS;
    }
    caller_t caller;
    connect_caller(&caller, &session_options, measurement.encoding);
    if (CHECK == mode)
    {
        check(&caller, path);
    }
    else if (WRONG_INPUT == mode)
    {
        wrong_input(&caller, path);
    }
    else
    {
        endless(&caller);
    }
    close_caller(&caller);
    return EXIT_SUCCESS;
}
