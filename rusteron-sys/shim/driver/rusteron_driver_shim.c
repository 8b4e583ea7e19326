#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_MSC_VER)
#include <sys/stat.h>
#endif

#include "aeron_alloc.h"
#include "aeron_congestion_control.h"
#include "aeron_driver.h"
#include "aeron_driver_context.h"
#include "aeron_name_resolver.h"
#include "aeron_windows.h"
#include "concurrent/aeron_thread.h"
#include "media/aeron_random_loss_generator.h"
#include "media/aeron_receive_channel_endpoint.h"
#include "media/aeron_send_channel_endpoint.h"
#include "media/aeron_udp_channel_transport_bindings.h"
#include "media/aeron_udp_channel_transport_fixed_loss.h"
#include "media/aeron_udp_channel_transport_loss.h"
#include "media/aeron_udp_transport_poller.h"
#include "protocol/aeron_udp_protocol.h"
#include "util/aeron_clock.h"
#include "util/aeron_error.h"
#include "util/aeron_fileutil.h"

#include "rusteron_clock.h"
#include "rusteron_driver_home.h"
#include "rusteron_driver_shim.h"

/* If an endpoint's generator cannot be allocated, the endpoint loses nothing. */
static void rusteron_attach(const aeron_loss_generator_t **slot, double rate, int64_t seed)
{
    aeron_loss_generator_t *generator = NULL;

    if (rate <= 0.0 || NULL != *slot)
    {
        return;
    }

    if (aeron_random_loss_generator_create(&generator, rate, seed) < 0)
    {
        aeron_err_clear();
        return;
    }

    generator->close = aeron_random_loss_generator_delete;
    *slot = generator;
}

/* The control frames of an endpoint are lost by another sequence than its data. */
static int64_t rusteron_control_seed(const rusteron_loss_t *loss)
{
    return loss->seed ^ INT64_C(0x5DEECE66D);
}

static void rusteron_on_send_channel(void *clientd, struct aeron_send_channel_endpoint_stct *endpoint)
{
    const rusteron_loss_t *loss = clientd;

    rusteron_attach(&endpoint->data_loss_generator, loss->data_rate, loss->seed);
    rusteron_attach(&endpoint->control_loss_generator, loss->control_rate, rusteron_control_seed(loss));
}

static void rusteron_on_receive_channel(void *clientd, struct aeron_receive_channel_endpoint_stct *endpoint)
{
    const rusteron_loss_t *loss = clientd;

    rusteron_attach(&endpoint->data_loss_generator, loss->data_rate, loss->seed);
    rusteron_attach(&endpoint->control_loss_generator, loss->control_rate, rusteron_control_seed(loss));
}

int rusteron_driver_context_set_send_loss(aeron_driver_context_t *context, rusteron_loss_t *loss)
{
    return aeron_driver_context_set_send_channel_loss_supplier(
        context, NULL != loss ? rusteron_on_send_channel : NULL, loss);
}

int rusteron_driver_context_set_receive_loss(aeron_driver_context_t *context, rusteron_loss_t *loss)
{
    return aeron_driver_context_set_receive_channel_loss_supplier(
        context, NULL != loss ? rusteron_on_receive_channel : NULL, loss);
}

int rusteron_driver_context_load_incoming_interceptors(aeron_driver_context_t *context, const char *names)
{
    aeron_udp_channel_interceptor_bindings_t *bindings = NULL;

    if (NULL != names && NULL == (bindings = aeron_udp_channel_interceptor_bindings_load(NULL, names)))
    {
        AERON_APPEND_ERR("incoming interceptors: %s", names);
        return -1;
    }

    /* Aeron's own setter would leak the earlier interceptors. */
    const aeron_udp_channel_interceptor_bindings_t *before = context->udp_channel_incoming_interceptor_bindings;
    while (NULL != before)
    {
        const aeron_udp_channel_interceptor_bindings_t *next = before->meta_info.next_interceptor_bindings;
        aeron_free((void *)before);
        before = next;
    }

    return aeron_driver_context_set_udp_channel_incoming_interceptors(context, bindings);
}

const char *rusteron_driver_context_unusable_interceptor(aeron_driver_context_t *context)
{
    const aeron_udp_channel_interceptor_bindings_t *bindings;

    for (bindings = context->udp_channel_outgoing_interceptor_bindings;
        NULL != bindings;
        bindings = bindings->meta_info.next_interceptor_bindings)
    {
        if (NULL == bindings->outgoing_init_func || NULL == bindings->outgoing_send_func)
        {
            return bindings->meta_info.name;
        }
    }

    for (bindings = context->udp_channel_incoming_interceptor_bindings;
        NULL != bindings;
        bindings = bindings->meta_info.next_interceptor_bindings)
    {
        if (NULL == bindings->incoming_init_func || NULL == bindings->incoming_func)
        {
            return bindings->meta_info.name;
        }
    }

    return NULL;
}

/* One state for each agent, which is its only user. */
typedef struct rusteron_loss_state_stct
{
    aeron_udp_channel_interceptor_loss_params_t params;
    unsigned short xsubi[3];
}
rusteron_loss_state_t;

/* As in Aeron, arguments that cannot be read mean no loss. */
static int rusteron_loss_init_incoming(
    void **interceptor_state, aeron_driver_context_t *context, aeron_udp_channel_transport_affinity_t affinity)
{
    (void)context;
    (void)affinity;
    const char *variable = getenv("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS");
    const char *text = NULL != variable ? variable : "";
    const size_t size = strlen(text) + 1;
    rusteron_loss_state_t *state = NULL;
    char *args = NULL;

    if (aeron_alloc((void **)&state, sizeof(rusteron_loss_state_t)) < 0 || aeron_alloc((void **)&args, size) < 0)
    {
        aeron_free(state);
        AERON_APPEND_ERR("%s", "interceptor loss");
        return -1;
    }

    memcpy(args, text, size);
    if (aeron_udp_channel_interceptor_loss_parse_params(args, &state->params) < 0)
    {
        aeron_err_clear();
        memset(&state->params, 0, sizeof(state->params));
    }
    aeron_free(args);

    state->xsubi[0] = (unsigned short)(state->params.seed >> 32);
    state->xsubi[1] = (unsigned short)(state->params.seed >> 16);
    state->xsubi[2] = (unsigned short)state->params.seed;
    *interceptor_state = state;
    return 0;
}

static int rusteron_loss_close_incoming(void *interceptor_state)
{
    aeron_free(interceptor_state);
    return 0;
}

static bool rusteron_is_lost(rusteron_loss_state_t *state, const uint8_t *buffer, size_t length)
{
    if (state->params.rate <= 0.0 || length < sizeof(aeron_frame_header_t))
    {
        return false;
    }

    const uint16_t type = ((const aeron_frame_header_t *)buffer)->type;
    return type < 32 && 0 != ((UINT32_C(1) << type) & state->params.recv_msg_type_mask) &&
        aeron_erand48(state->xsubi) <= state->params.rate;
}

static void rusteron_loss_incoming(
    void *interceptor_state,
    aeron_udp_channel_incoming_interceptor_t *delegate,
    aeron_udp_channel_transport_t *transport,
    void *receiver_clientd,
    void *endpoint_clientd,
    void *destination_clientd,
    uint8_t *buffer,
    size_t length,
    struct sockaddr_storage *addr,
    struct timespec *media_timestamp)
{
    if (!rusteron_is_lost(interceptor_state, buffer, length))
    {
        delegate->incoming_func(
            delegate->interceptor_state,
            delegate->next_interceptor,
            transport,
            receiver_clientd,
            endpoint_clientd,
            destination_clientd,
            buffer,
            length,
            addr,
            media_timestamp);
    }
}

void rusteron_driver_context_part_loss_states(aeron_driver_context_t *context)
{
    aeron_udp_channel_interceptor_bindings_t *bindings = context->udp_channel_incoming_interceptor_bindings;

    while (NULL != bindings)
    {
        if (aeron_udp_channel_interceptor_loss_incoming == bindings->incoming_func)
        {
            bindings->incoming_init_func = rusteron_loss_init_incoming;
            bindings->incoming_func = rusteron_loss_incoming;
            bindings->incoming_close_func = rusteron_loss_close_incoming;
        }
        bindings = (aeron_udp_channel_interceptor_bindings_t *)bindings->meta_info.next_interceptor_bindings;
    }
}

int rusteron_driver_context_check_fixed_loss(aeron_driver_context_t *context)
{
    const aeron_udp_channel_interceptor_bindings_t *bindings;

    for (bindings = context->udp_channel_incoming_interceptor_bindings;
        NULL != bindings;
        bindings = bindings->meta_info.next_interceptor_bindings)
    {
        void *state = NULL;

        if (aeron_udp_channel_interceptor_fixed_loss_incoming != bindings->incoming_func)
        {
            continue;
        }

        if (bindings->incoming_init_func(&state, context, AERON_UDP_CHANNEL_TRANSPORT_AFFINITY_RECEIVER) < 0)
        {
            return -1;
        }
        bindings->incoming_close_func(state);
    }

    return 0;
}

/* If a transport and a poller have not been made, they are zeroed, and their descriptor is 0. */
static int rusteron_resolver_transport_close(aeron_udp_channel_transport_t *transport)
{
    return NULL == transport->error_log ? 0 : aeron_udp_channel_transport_close(transport);
}

static int rusteron_resolver_poller_close(aeron_udp_transport_poller_t *poller)
{
    const aeron_udp_transport_poller_t unmade = { 0 };
    const bool is_made = NULL != poller->transports.array ||
        unmade.iteration_threshold != poller->iteration_threshold ||
        unmade.socket_poll_limit != poller->socket_poll_limit ||
        unmade.fd != poller->fd;

    return is_made ? aeron_udp_transport_poller_close(poller) : 0;
}

/* Aeron defines it without a header. */
extern aeron_udp_channel_transport_bindings_t aeron_udp_channel_transport_bindings_default;

static AERON_INIT_ONCE rusteron_resolver_bindings_once = AERON_INIT_ONCE_VALUE;
static aeron_udp_channel_transport_bindings_t rusteron_resolver_bindings;

static void rusteron_init_resolver_bindings(void)
{
    rusteron_resolver_bindings = aeron_udp_channel_transport_bindings_default;
    rusteron_resolver_bindings.close_func = rusteron_resolver_transport_close;
    rusteron_resolver_bindings.poller_close_func = rusteron_resolver_poller_close;
}

void rusteron_driver_context_guard_resolver(aeron_driver_context_t *context)
{
    if (&aeron_udp_channel_transport_bindings_default == context->conductor_udp_channel_transport_bindings)
    {
        (void)aeron_thread_once(&rusteron_resolver_bindings_once, rusteron_init_resolver_bindings);
        context->conductor_udp_channel_transport_bindings = &rusteron_resolver_bindings;
    }
}

#if defined(_MSC_VER)
void rusteron_driver_context_set_dir_access(aeron_driver_context_t *context, rusteron_dir_access_t access)
{
    (void)context;
    (void)access;
}
#else
/* The file's mode is set after the file is made: until then the directory's mode keeps other users out. */
static int rusteron_raw_log_map_with_mode(
    aeron_mapped_raw_log_t *mapped_raw_log,
    const char *path,
    bool use_sparse_files,
    uint64_t term_length,
    uint64_t page_size,
    mode_t mode)
{
    if (rusteron_raw_log_map(mapped_raw_log, path, use_sparse_files, term_length, page_size) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        return -1;
    }

    if (chmod(path, mode) < 0)
    {
        AERON_SET_ERR(errno, "Failed to set the mode of a log buffer: %s", path);
        (void)rusteron_raw_log_free(mapped_raw_log, path);
        return -1;
    }

    return 0;
}

static int rusteron_raw_log_map_private(
    aeron_mapped_raw_log_t *mapped_raw_log,
    const char *path,
    bool use_sparse_files,
    uint64_t term_length,
    uint64_t page_size)
{
    return rusteron_raw_log_map_with_mode(
        mapped_raw_log, path, use_sparse_files, term_length, page_size, S_IRUSR | S_IWUSR);
}

static int rusteron_raw_log_map_group(
    aeron_mapped_raw_log_t *mapped_raw_log,
    const char *path,
    bool use_sparse_files,
    uint64_t term_length,
    uint64_t page_size)
{
    return rusteron_raw_log_map_with_mode(
        mapped_raw_log, path, use_sparse_files, term_length, page_size, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP);
}

void rusteron_driver_context_set_dir_access(aeron_driver_context_t *context, rusteron_dir_access_t access)
{
    switch (access)
    {
        case RUSTERON_DIR_ACCESS_PRIVATE:
            context->raw_log_map_func = rusteron_raw_log_map_private;
            break;

        case RUSTERON_DIR_ACCESS_GROUP:
            context->raw_log_map_func = rusteron_raw_log_map_group;
            break;

        case RUSTERON_DIR_ACCESS_UMASK:
            context->raw_log_map_func = rusteron_raw_log_map;
            break;
    }

    context->raw_log_free_func = rusteron_raw_log_free;
}
#endif

int rusteron_thread_umask(void)
{
#if defined(__linux__)
    if (unshare(CLONE_FS) < 0)
    {
        return errno;
    }

    umask(S_IRWXG | S_IRWXO);
    return 0;
#else
    return ENOSYS;
#endif
}

void rusteron_driver_context_mappings(aeron_driver_context_t *context, void *addresses[2], size_t lengths[2])
{
    addresses[0] = context->cnc_map.addr;
    lengths[0] = context->cnc_map.length;
    addresses[1] = context->loss_report.addr;
    lengths[1] = context->loss_report.length;
}

/* The conductor's part of an idle duty cycle takes a fifth of it. What the conductor answers can wait for so long. */
#define RUSTERON_CONDUCTOR_INTERVAL_NS (2 * 1000)

int rusteron_driver_main_do_work(aeron_driver_t *driver, int64_t *conductor_due_ns)
{
    const aeron_threading_mode_t mode = driver->context->threading_mode;
    int64_t now_ns;
    int work_count;

    if (AERON_THREADING_MODE_INVOKER != mode && AERON_THREADING_MODE_SHARED != mode)
    {
        return aeron_driver_main_do_work(driver);
    }

    work_count = aeron_driver_sender_do_work(&driver->sender);
    now_ns = aeron_clock_cached_nano_time(driver->context->sender_cached_clock);

    if (now_ns >= *conductor_due_ns)
    {
        const int conducted = aeron_driver_native_resource_agent_do_work(&driver->native_resource_agent) +
            rusteron_driver_conductor_do_work(&driver->conductor);

        *conductor_due_ns = 0 == conducted ? now_ns + RUSTERON_CONDUCTOR_INTERVAL_NS : now_ns;
        work_count += conducted;
    }

    return work_count + aeron_driver_receiver_do_work(&driver->receiver);
}
