#define _POSIX_C_SOURCE 200809L

#include "modes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The greatest argument that this program's callback accepts. */
#define CALLBACK_LIMIT 12
/* Longer results are printed as their length and hash. */
#define RESULT_LIMIT 120
/* Calls in the first block of the warm-up. */
#define FIRST_BLOCK 100
/* Blocks in a row that are no faster before the warm-up ends. */
#define STEADY_BLOCKS 3
/* Shortest warm-up. */
#define LEAST_WARMUP_NS 500000000
/* A faster block takes less than this share of an earlier block's time for a call. */
#define FASTER 0.95

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

static const char *const STATUS_NAMES[STATUS_COUNT] = {
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

void fail(const char *format, ...)
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

bool modes_square(int64_t argument, int64_t *answer)
{
    if (argument < 0 || argument > CALLBACK_LIMIT)
    {
        return false;
    }
    *answer = argument * argument;
    return true;
}

const char *modes_status_name(uint8_t status)
{
    return status < STATUS_COUNT ? STATUS_NAMES[status] : "unknown status";
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

FILE *modes_open_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (NULL == file)
    {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return file;
}

char *modes_read_line(FILE *file, char **line, size_t *capacity)
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

const operation_t *modes_find_operation(const char *name)
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
static void check(const modes_t *modes, const transport_t *transport)
{
    FILE *file = modes_open_file(modes->check);
    void *connection = transport->connect(transport->options, modes->encoding);
    char *line = NULL, *text;
    size_t capacity = 0;
    buffer_t canonical = { .length = 0 };
    for (unsigned number = 1; NULL != (text = modes_read_line(file, &line, &capacity)); number++)
    {
        const operation_t *operation = modes_find_operation(line);
        json_t *argument = body_read_json(text, strlen(text));
        if (NULL == argument)
        {
            fail("line %u: no JSON", number);
        }
        uint8_t status;
        json_t *result = transport->call(connection, operation, argument, &status);
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
            fputs(modes_status_name(status), stdout);
        }
        putchar('\n');
        json_decref(result);
    }
    free(canonical.bytes);
    free(line);
    fclose(file);
    transport->close(connection);
}

typedef struct measurement_stct
{
    const modes_t *modes;
    const transport_t *transport;
    /* Of all callers and the main thread, before and after timed and counted calls. */
    pthread_barrier_t barrier;
}
measurement_t;

typedef struct measured_caller_stct
{
    measurement_t *measurement;
    pthread_t thread;
    size_t warmup_calls;
    bool is_steady;
    int64_t *times;
    size_t counted_calls;
}
measured_caller_t;

static json_t *checked_call(
    const transport_t *transport, void *connection, const operation_t *operation, json_t *argument)
{
    uint8_t status;
    json_t *result = transport->call(connection, operation, argument, &status);
    if (STATUS_OK != status)
    {
        fail("%s: %s", operation->name, modes_status_name(status));
    }
    return result;
}

/* Calls in blocks, each twice as long as the block before, until some in a row are no faster than the fastest. */
static void warm_up(
    measured_caller_t *measured, void *connection, const operation_t *operation, json_t *argument)
{
    const modes_t *modes = measured->measurement->modes;
    const int64_t begin = now_ns();
    const int64_t deadline = begin + (int64_t)modes->warmup_ms * 1000000;
    double fastest = -1;
    int steady_blocks = 0;
    for (size_t block = FIRST_BLOCK; steady_blocks < STEADY_BLOCKS || now_ns() - begin < LEAST_WARMUP_NS; block *= 2)
    {
        const int64_t start = now_ns();
        for (size_t i = 0; i < block; i++)
        {
            if (now_ns() >= deadline)
            {
                return;
            }
            json_decref(checked_call(measured->measurement->transport, connection, operation, argument));
            measured->warmup_calls++;
        }
        const double time = (double)(now_ns() - start) / (double)block;
        const bool is_faster = fastest < 0 || time < FASTER * fastest;
        steady_blocks = is_faster ? 0 : steady_blocks + 1;
        fastest = fastest < 0 || time < fastest ? time : fastest;
    }
    measured->is_steady = true;
}

/* A concurrent caller: connects, warms up, and after a common beginning each, times its calls and counts them. */
static void *run_caller(void *clientd)
{
    measured_caller_t *measured = clientd;
    measurement_t *measurement = measured->measurement;
    const modes_t *modes = measurement->modes;
    const transport_t *transport = measurement->transport;
    const size_t payload = modes->payload;
    void *connection = transport->connect(transport->options, modes->encoding);
    const operation_t *operation = modes_find_operation(0 == payload ? "ping" : "reverse");
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
    json_t *result = checked_call(transport, connection, operation, argument);
    if (!json_equal(result, expected))
    {
        fail("%s: wrong result", operation->name);
    }
    json_decref(result);
    warm_up(measured, connection, operation, argument);
    /* All are ready, and begin. */
    pthread_barrier_wait(&measurement->barrier);
    pthread_barrier_wait(&measurement->barrier);
    for (size_t i = 0; i < modes->calls; i++)
    {
        const int64_t start = now_ns();
        json_decref(checked_call(transport, connection, operation, argument));
        measured->times[i] = now_ns() - start;
    }
    pthread_barrier_wait(&measurement->barrier);
    pthread_barrier_wait(&measurement->barrier);
    const int64_t deadline = now_ns() + (int64_t)modes->counted_ms * 1000000;
    while (now_ns() < deadline)
    {
        json_decref(checked_call(transport, connection, operation, argument));
        measured->counted_calls++;
    }
    pthread_barrier_wait(&measurement->barrier);
    json_decref(argument);
    json_decref(expected);
    free(text);
    free(reversed);
    transport->close(connection);
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

/* Times the calls of concurrent callers. */
static void measure(const modes_t *modes, const transport_t *transport)
{
    const size_t callers = modes->callers, calls = modes->calls;
    measurement_t measurement = { .modes = modes, .transport = transport };
    measured_caller_t *measured = calloc(callers, sizeof(measured_caller_t));
    int64_t *times = calloc(callers * calls, sizeof(int64_t));
    if (NULL == measured || NULL == times ||
        0 != pthread_barrier_init(&measurement.barrier, NULL, (unsigned)callers + 1))
    {
        fail("out of memory");
    }
    for (size_t i = 0; i < callers; i++)
    {
        measured[i].measurement = &measurement;
        measured[i].times = times + i * calls;
        if (0 != pthread_create(&measured[i].thread, NULL, run_caller, &measured[i]))
        {
            fail("no thread");
        }
    }
    pthread_barrier_wait(&measurement.barrier);
    /* Before the callers begin: afterwards, this thread may have to wait for a core. */
    const int64_t start = now_ns();
    pthread_barrier_wait(&measurement.barrier);
    pthread_barrier_wait(&measurement.barrier);
    const int64_t elapsed = now_ns() - start;
    if (modes->counted_ms > 0)
    {
        puts("counting");
        fflush(stdout);
    }
    const int64_t counted_start = now_ns();
    pthread_barrier_wait(&measurement.barrier);
    pthread_barrier_wait(&measurement.barrier);
    const int64_t counted_elapsed = now_ns() - counted_start;
    size_t warmup_calls = 0, counted_calls = 0;
    bool is_steady = true;
    for (size_t i = 0; i < callers; i++)
    {
        pthread_join(measured[i].thread, NULL);
        warmup_calls += measured[i].warmup_calls;
        counted_calls += measured[i].counted_calls;
        is_steady = is_steady && measured[i].is_steady;
    }
    printf("{\"elapsed_ns\":%" PRId64 ",\"calls\":%zu,\"warmup_calls\":%zu,\"is_steady\":%s,"
        "\"counted_ns\":%" PRId64 ",\"counted_calls\":%zu,"
        "\"allocations_per_call\":null,\"allocated_bytes_per_call\":null}\n",
        elapsed, callers * calls, warmup_calls, is_steady ? "true" : "false", counted_elapsed, counted_calls);
    write_samples(modes->samples, times, callers * calls);
    pthread_barrier_destroy(&measurement.barrier);
    free(measured);
    free(times);
}

/* Connects, calls `ping` and closes, again and again. */
static void connect_cycles(const modes_t *modes, const transport_t *transport)
{
    const size_t cycles = modes->connect_cycles;
    int64_t *times = calloc(cycles, sizeof(int64_t));
    json_t *argument = json_null();
    if (NULL == times)
    {
        fail("out of memory");
    }
    const int64_t begin = now_ns();
    for (size_t i = 0; i < cycles; i++)
    {
        const int64_t start = now_ns();
        void *connection = transport->connect(transport->options, modes->encoding);
        json_decref(checked_call(transport, connection, modes_find_operation("ping"), argument));
        transport->close(connection);
        times[i] = now_ns() - start;
    }
    printf("{\"elapsed_ns\":%" PRId64 ",\"calls\":%zu}\n", now_ns() - begin, cycles);
    write_samples(modes->samples, times, cycles);
    json_decref(argument);
    free(times);
}

bool modes_option(modes_t *modes, int option, const char *argument)
{
    switch (option)
    {
        case 'e':
            if (0 != strcmp(argument, "json") && 0 != strcmp(argument, "binary"))
            {
                fail("no such encoding: %s", argument);
            }
            modes->encoding = 0 == strcmp(argument, "json") ? ENCODING_JSON : ENCODING_BINARY;
            return true;

        case 'k':
            modes->check = argument;
            return true;

        case 'm':
            modes->is_measuring = true;
            modes->payload = strtoul(argument, NULL, 10);
            return true;

        case 'c':
            modes->connect_cycles = strtoul(argument, NULL, 10);
            return true;

        case 'n':
            modes->calls = strtoul(argument, NULL, 10);
            return true;

        case 'w':
            modes->warmup_ms = strtoul(argument, NULL, 10);
            return true;

        case 'd':
            modes->counted_ms = strtoul(argument, NULL, 10);
            return true;

        case 't':
            modes->callers = strtoul(argument, NULL, 10);
            return true;

        case 's':
            modes->samples = argument;
            return true;

        default:
            return false;
    }
}

bool modes_run(const modes_t *modes, const transport_t *transport)
{
    if (0 == modes->calls || 0 == modes->callers)
    {
        fail("--calls and --callers must be 1 or more");
    }
    if (NULL != modes->check)
    {
        check(modes, transport);
    }
    else if (modes->is_measuring)
    {
        measure(modes, transport);
    }
    else if (modes->connect_cycles > 0)
    {
        connect_cycles(modes, transport);
    }
    else
    {
        return false;
    }
    return true;
}
