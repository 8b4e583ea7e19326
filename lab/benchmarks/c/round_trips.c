/*
 * One side of the round trips of `benchmark udp-round-trips`: application, Aeron's client and
 * driver in one loop. As "ping" it prints a histogram, "latency NANOSECONDS COUNT" for each value,
 * and "done". As "pong" it sends every message back until its standard input is closed.
 */
#define _GNU_SOURCE

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aeronc.h"
#include "aeronmd.h"

#define STREAM_ID (1001)
#define FRAGMENT_LIMIT (10)
#define DEADLINE_NS (INT64_C(20000000000))
#define NANOS_PER_BIN (10)
#define BINS (4000000)

static atomic_bool running = true;
static uint32_t bins[BINS];

typedef struct side_stct
{
    aeron_driver_t *driver;
    aeron_t *aeron;
    aeron_exclusive_publication_t *publication;
    aeron_subscription_t *subscription;
    int64_t measure_from;
    int64_t longest;
    uint64_t received;
}
side_t;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void check(bool is_good, const char *action)
{
    if (!is_good)
    {
        fprintf(stderr, "%s: %s\n", action, aeron_errmsg());
        exit(1);
    }
}

static void *await_end(void *unused)
{
    char buffer[64];
    while (read(STDIN_FILENO, buffer, sizeof(buffer)) > 0)
    {
    }
    atomic_store_explicit(&running, false, memory_order_relaxed);
    return unused;
}

static void work(side_t *side)
{
    check(aeron_driver_main_do_work(side->driver) >= 0, "driver");
    check(aeron_main_do_work(side->aeron) >= 0, "client");
}

/* The client has a turn when there is no message. */
static void receive(side_t *side, aeron_fragment_handler_t handler)
{
    check(aeron_driver_main_do_work(side->driver) >= 0, "driver");
    const int fragments = aeron_subscription_poll(side->subscription, handler, side, FRAGMENT_LIMIT);
    check(fragments >= 0, "poll");
    if (0 == fragments)
    {
        check(aeron_main_do_work(side->aeron) >= 0, "client");
    }
}

/* Offers until the message is accepted. */
static void offer(side_t *side, const uint8_t *message, size_t length)
{
    int64_t result;

    while ((result = aeron_exclusive_publication_offer(side->publication, message, length, NULL, NULL)) < 0 &&
        atomic_load_explicit(&running, memory_order_relaxed))
    {
        check(AERON_PUBLICATION_CLOSED != result && AERON_PUBLICATION_MAX_POSITION_EXCEEDED != result &&
            AERON_PUBLICATION_ERROR != result, "offer");
        work(side);
    }
}

static void on_ping(void *clientd, const uint8_t *message, size_t length, aeron_header_t *header)
{
    (void)header;
    offer(clientd, message, length);
}

static void on_pong(void *clientd, const uint8_t *message, size_t length, aeron_header_t *header)
{
    side_t *side = clientd;
    int64_t sent;

    (void)length;
    (void)header;
    memcpy(&sent, message, sizeof(sent));
    if (sent >= side->measure_from)
    {
        const int64_t latency = now_ns() - sent;
        const int64_t bin = latency / NANOS_PER_BIN;

        bins[bin < BINS ? bin : BINS - 1]++;
        side->longest = latency > side->longest ? latency : side->longest;
    }
    side->received++;
}

static void ping(side_t *side, size_t length, int64_t warmup, int64_t measure)
{
    uint8_t *message = calloc(1, length);
    uint64_t sent = 0;
    int64_t now = now_ns();

    check(NULL != message, "message");
    side->measure_from = now + warmup;
    for (const int64_t end = side->measure_from + measure; now < end || 0 == side->longest; now = now_ns())
    {
        memcpy(message, &now, sizeof(now));
        offer(side, message, length);
        sent++;
        for (uint32_t turns = 0; side->received < sent; turns++)
        {
            receive(side, on_pong);
            if (0 == turns % 1024)
            {
                check(now_ns() - now < DEADLINE_NS && atomic_load(&running), "nothing comes back");
            }
        }
    }
    for (int64_t bin = 0; bin < BINS - 1; bin++)
    {
        if (bins[bin] > 0)
        {
            printf("latency %" PRId64 " %" PRIu32 "\n", bin * NANOS_PER_BIN + NANOS_PER_BIN / 2, bins[bin]);
        }
    }
    if (bins[BINS - 1] > 0)
    {
        printf("latency %" PRId64 " %" PRIu32 "\n", side->longest, bins[BINS - 1]);
    }
    printf("done\n");
    free(message);
}

int main(int argc, char **argv)
{
    char to[256], from[256];
    side_t side = { 0 };
    aeron_driver_context_t *driver_context = NULL;
    aeron_context_t *context = NULL;
    aeron_async_add_subscription_t *adding_subscription = NULL;
    aeron_async_add_exclusive_publication_t *adding_publication = NULL;
    pthread_t thread;

    if (9 != argc)
    {
        fprintf(stderr, "usage: %s ping|pong DIR TO FROM TERM_LENGTH MESSAGE_LENGTH WARMUP_NS MEASURE_NS\n", argv[0]);
        return 2;
    }
    const bool is_ping = 0 == strcmp(argv[1], "ping");
    snprintf(to, sizeof(to), "aeron:udp?endpoint=%s|term-length=%s", argv[3], argv[5]);
    snprintf(from, sizeof(from), "aeron:udp?endpoint=%s", argv[4]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(0 == pthread_create(&thread, NULL, await_end, NULL), "thread");

    check(aeron_driver_context_init(&driver_context) >= 0 &&
        aeron_driver_context_set_dir(driver_context, argv[2]) >= 0 &&
        aeron_driver_context_set_threading_mode(driver_context, AERON_THREADING_MODE_INVOKER) >= 0 &&
        aeron_driver_init(&side.driver, driver_context) >= 0 &&
        aeron_driver_start(side.driver, true) >= 0 &&
        aeron_driver_main_do_work(side.driver) >= 0, "driver");
    check(aeron_context_init(&context) >= 0 &&
        aeron_context_set_dir(context, argv[2]) >= 0 &&
        aeron_context_set_use_conductor_agent_invoker(context, true) >= 0 &&
        aeron_init(&side.aeron, context) >= 0 &&
        aeron_start(side.aeron) >= 0, "client");
    check(aeron_async_add_subscription(
        &adding_subscription, side.aeron, from, STREAM_ID, NULL, NULL, NULL, NULL) >= 0, "subscription");
    check(aeron_async_add_exclusive_publication(&adding_publication, side.aeron, to, STREAM_ID) >= 0, "publication");
    while (NULL == side.subscription)
    {
        work(&side);
        check(aeron_async_add_subscription_poll(&side.subscription, adding_subscription) >= 0, "subscription");
    }
    while (NULL == side.publication)
    {
        work(&side);
        check(aeron_async_add_exclusive_publication_poll(&side.publication, adding_publication) >= 0, "publication");
    }
    printf("ready\n");
    const int64_t start = now_ns();
    while (!aeron_exclusive_publication_is_connected(side.publication) ||
        !aeron_subscription_is_connected(side.subscription))
    {
        work(&side);
        check(now_ns() - start < DEADLINE_NS && atomic_load(&running), "no connection");
    }

    if (is_ping)
    {
        ping(&side, strtoull(argv[6], NULL, 10), strtoll(argv[7], NULL, 10), strtoll(argv[8], NULL, 10));
    }
    else
    {
        while (atomic_load_explicit(&running, memory_order_relaxed))
        {
            receive(&side, on_ping);
        }
    }
    aeron_close(side.aeron);
    aeron_context_close(context);
    aeron_driver_close(side.driver);
    aeron_driver_context_close(driver_context);
    return 0;
}
