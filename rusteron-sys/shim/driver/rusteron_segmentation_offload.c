/*
 * UDP transport bindings that make fewer system calls. They hand several datagrams to Linux as one buffer
 * (UDP_SEGMENT), read several datagrams as one buffer (UDP_GRO), and read less often what is likely empty. Aeron's
 * default bindings do everything else. Nothing changes on the wire: the kernel or the network device cuts the buffer
 * into the same datagrams.
 *
 * Aeron's driver reaches sockets through a table of functions. A launch copies Aeron's table, replaces three of them, and
 * gives the copy to the context. A transport's `bindings_clientd` points to the copy while the offload is in use, and is
 * NULL otherwise, which means Aeron's functions.
 *
 * Sending. A run is up to 64 datagrams of equal length, of which the last may be shorter. The kernel refuses a run as a
 * whole, for example if a datagram is longer than the route's MTU. The transport then sends the rest by Aeron's function,
 * forgets the offload, and logs one warning. A full socket buffer ends the call early, and Aeron sends the same bytes
 * again later. With several destinations it does not, so the datagrams of the run are then sent one by one, and as many
 * go out as fit.
 *
 * Receiving. The kernel coalesces datagrams of one sender and one length. Everything above the transport sees single
 * datagrams. The receiver's buffers have 64 KiB, the kernel's limit. A coalesced buffer has one timestamp, so a transport
 * with timestamps of received media reads single datagrams. A datagram that is not aligned to a frame is moved to the
 * start of the buffer before Aeron reads it.
 *
 * Empty reads. Most of an idle duty cycle is reads of empty sockets. The sender skips a socket for a while after it was
 * empty. The receiver asks for one buffer first, and for twice as many after a read that got all it asked for.
 */
#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <string.h>

#include "aeron_alloc.h"
#include "aeron_driver_context.h"
#include "media/aeron_udp_channel_transport.h"
#include "media/aeron_udp_channel_transport_bindings.h"
#include "util/aeron_clock.h"
#include "util/aeron_error.h"
#include "util/aeron_netutil.h"

#include "rusteron_driver_shim.h"

#if defined(__linux__)

#include <sys/socket.h>
#include <netinet/in.h>

/* Old C libraries lack these numbers of the kernel's interface. */
#if !defined(SOL_UDP)
#define SOL_UDP (17)
#endif
#if !defined(UDP_SEGMENT)
#define UDP_SEGMENT (103)
#endif
#if !defined(UDP_GRO)
#define UDP_GRO (104)
#endif

/* The kernel's limits of one buffer, over IPv4. Over IPv6 there are 20 more bytes. */
#define RUSTERON_MAX_SEGMENTS (64)
#define RUSTERON_MAX_COALESCED_LENGTH (65507)

/* While a datagram is dispatched, the processor fetches the one this many datagrams later. */
#define RUSTERON_PREFETCH_DISTANCE (2)
#define RUSTERON_CACHE_LINE_LENGTH (64)

/* Frames are aligned to this many bytes where Aeron reads them. */
#define RUSTERON_FRAME_ALIGNMENT (8)

/*
 * After a sender's socket was empty, the sender skips it for this time. A read of an empty socket is a large part of an
 * idle duty cycle, in which a message for the sender or receiver waits. Idle strategies that sleep let status messages and
 * NAKs wait for longer than this.
 */
#define RUSTERON_EMPTY_READ_INTERVAL_NS (5 * 1000)

/* Entries of the tables below, which are indexed by descriptor. */
#define RUSTERON_SOCKETS (1024)

/* When a sender reads a socket again. Names the socket, so that none is skipped for another with the same index. */
typedef struct rusteron_offload_skip_stct
{
    int fd;
    int64_t until_ns;
}
rusteron_offload_skip_t;

/* What a transport does. Its `bindings_clientd` points here while the kernel supports it, and is NULL otherwise. */
typedef struct rusteron_offload_direction_stct
{
    /* Incremented by one thread, sender or receiver. */
    int64_t *counter;
    rusteron_segmentation_offload_t *offload;
}
rusteron_offload_direction_t;

struct rusteron_segmentation_offload_stct
{
    /* First, because the context's pointer to the bindings leads to the rest. */
    aeron_udp_channel_transport_bindings_t bindings;
    rusteron_offload_direction_t send;
    rusteron_offload_direction_t receive;
    rusteron_offload_refused_func_t on_refused;
    /* The time of the sender's duty cycle, and the sockets that it skips. For the sender's thread alone. */
    aeron_clock_cache_t *sender_clock;
    rusteron_offload_skip_t skips[RUSTERON_SOCKETS];
    /* How many buffers to ask for; sockets with the same index share a guess. For the receiver's thread alone. */
    uint8_t read_lengths[RUSTERON_SOCKETS];
};

/* Aeron defines it without a header. */
extern aeron_udp_channel_transport_bindings_t aeron_udp_channel_transport_bindings_default;

static bool rusteron_offload_can_send(const aeron_udp_channel_transport_t *transport)
{
    int length = 0;
    socklen_t size = sizeof(length);

    return 0 == getsockopt(transport->fd, SOL_UDP, UDP_SEGMENT, &length, &size);
}

static bool rusteron_offload_start_receiving(const aeron_udp_channel_transport_t *transport)
{
    const int enabled = 1;

    /* A coalesced buffer has one timestamp, and each datagram needs its own. */
    return AERON_UDP_CHANNEL_TRANSPORT_MEDIA_RCV_TIMESTAMP_NONE == transport->timestamp_flags &&
        0 == setsockopt(transport->recv_fd, SOL_UDP, UDP_GRO, &enabled, sizeof(enabled));
}

static int rusteron_offload_init(
    aeron_udp_channel_transport_t *transport,
    struct sockaddr_storage *bind_addr,
    struct sockaddr_storage *multicast_if_addr,
    struct sockaddr_storage *connect_addr,
    aeron_udp_channel_transport_params_t *params,
    aeron_driver_context_t *context,
    aeron_udp_channel_transport_affinity_t affinity)
{
    rusteron_segmentation_offload_t *offload =
        (rusteron_segmentation_offload_t *)context->udp_channel_transport_bindings;

    if (aeron_udp_channel_transport_bindings_default.init_func(
        transport, bind_addr, multicast_if_addr, connect_addr, params, context, affinity) < 0)
    {
        return -1;
    }

    /* The sender's read buffers are too short for coalesced datagrams, and the receiver sends single datagrams. */
    if (AERON_UDP_CHANNEL_TRANSPORT_AFFINITY_SENDER == affinity && rusteron_offload_can_send(transport))
    {
        transport->bindings_clientd = &offload->send;
    }
    else if (AERON_UDP_CHANNEL_TRANSPORT_AFFINITY_RECEIVER == affinity && rusteron_offload_start_receiving(transport))
    {
        transport->bindings_clientd = &offload->receive;
    }

    return 0;
}

/* The ancillary data of one buffer: the length of its datagrams, all but the last. */
typedef union rusteron_offload_control_un
{
    struct cmsghdr header;
    uint8_t send[CMSG_SPACE(sizeof(uint16_t))];
    uint8_t receive[CMSG_SPACE(sizeof(int))];
}
rusteron_offload_control_t;

/* Returns how many datagrams can go out as one buffer: equally long datagrams, of which the last may be shorter. */
static size_t rusteron_offload_run_length(const struct iovec *iov, size_t iov_length)
{
    const size_t segment_length = iov[0].iov_len;
    size_t total_length = segment_length;
    size_t count = 1;

    while (count < iov_length && count < RUSTERON_MAX_SEGMENTS)
    {
        const size_t length = iov[count].iov_len;
        total_length += length;
        if (0 == length || length > segment_length || total_length > RUSTERON_MAX_COALESCED_LENGTH)
        {
            break;
        }

        count++;
        if (length < segment_length)
        {
            break;
        }
    }

    return count;
}

/* Returns how many buffers hold the datagrams. In a term, datagrams lie one behind the other, and share a buffer. */
static size_t rusteron_offload_join(struct iovec *joined, const struct iovec *iov, size_t iov_length)
{
    size_t last = 0;

    joined[0] = iov[0];
    for (size_t i = 1; i < iov_length; i++)
    {
        if ((uint8_t *)joined[last].iov_base + joined[last].iov_len == iov[i].iov_base)
        {
            joined[last].iov_len += iov[i].iov_len;
        }
        else
        {
            joined[++last] = iov[i];
        }
    }

    return last + 1;
}

/* Returns whether the error may be about the coalesced buffer rather than about its datagrams. */
static bool rusteron_offload_is_refusal(int error_code)
{
    return EIO == error_code || EINVAL == error_code || EOPNOTSUPP == error_code || EMSGSIZE == error_code;
}

static void rusteron_offload_refuse(
    aeron_udp_channel_transport_t *transport,
    const rusteron_offload_direction_t *direction,
    struct sockaddr_storage *address,
    int error_code)
{
    char text[AERON_NETUTIL_FORMATTED_MAX_LENGTH] = { 0 };

    transport->bindings_clientd = NULL;
    if (aeron_format_source_identity(text, sizeof(text), NULL != address ? address : transport->connected_address) < 0)
    {
        aeron_err_clear();
    }
    direction->offload->on_refused(error_code, text);
}

/* Returns the number of datagrams that are sent, or -1. */
static int rusteron_offload_send(
    aeron_udp_channel_data_paths_t *data_paths,
    aeron_udp_channel_transport_t *transport,
    struct sockaddr_storage *address,
    struct iovec *iov,
    size_t iov_length,
    int64_t *bytes_sent)
{
    const rusteron_offload_direction_t *direction = transport->bindings_clientd;
    struct mmsghdr messages[AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND];
    rusteron_offload_control_t controls[AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND];
    struct iovec buffers[AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND];
    size_t run_lengths[AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND];
    size_t message_count = 0;
    size_t sent_messages = 0;
    size_t sent_datagrams = 0;

    if (NULL == direction ||
        &direction->offload->send != direction ||
        iov_length < 2 ||
        iov_length > AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND)
    {
        return aeron_udp_channel_transport_send(data_paths, transport, address, iov, iov_length, bytes_sent);
    }

    for (size_t i = 0; i < iov_length; message_count++)
    {
        const size_t run_length = rusteron_offload_run_length(&iov[i], iov_length - i);
        struct msghdr *header = &messages[message_count].msg_hdr;

        memset(header, 0, sizeof(*header));
        if (NULL == transport->connected_address)
        {
            header->msg_name = address;
            header->msg_namelen = AERON_ADDR_LEN(address);
        }
        header->msg_iov = &buffers[i];
        header->msg_iovlen = rusteron_offload_join(&buffers[i], &iov[i], run_length);
        if (run_length > 1)
        {
            struct cmsghdr *control = &controls[message_count].header;
            const uint16_t segment_length = (uint16_t)iov[i].iov_len;

            header->msg_control = control;
            header->msg_controllen = sizeof(controls[message_count].send);
            control->cmsg_level = SOL_UDP;
            control->cmsg_type = UDP_SEGMENT;
            control->cmsg_len = CMSG_LEN(sizeof(segment_length));
            memcpy(CMSG_DATA(control), &segment_length, sizeof(segment_length));
        }
        run_lengths[message_count] = run_length;
        i += run_length;
    }

    while (sent_messages < message_count)
    {
        const int sent = sendmmsg(
            transport->fd, &messages[sent_messages], (unsigned int)(message_count - sent_messages), 0);

        if (sent < 0)
        {
            const int error_code = errno;
            int rest;

            const bool is_full = EAGAIN == error_code || EWOULDBLOCK == error_code;

            /*
             * With several destinations, Aeron does not repeat a call that sent a part. A full buffer may still take
             * some of the run's datagrams.
             */
            if ((is_full && NULL != transport->connected_address) || ECONNREFUSED == error_code || EINTR == error_code)
            {
                break;
            }

            if (run_lengths[sent_messages] > 1 && rusteron_offload_is_refusal(error_code))
            {
                rusteron_offload_refuse(transport, direction, address, error_code);
            }

            /* Sends the rest one by one, or reports the error. */
            rest = aeron_udp_channel_transport_send(
                data_paths, transport, address, &iov[sent_datagrams], iov_length - sent_datagrams, bytes_sent);
            return rest < 0 ? rest : (int)sent_datagrams + rest;
        }

        /* After a part, the next call learns why the rest was not sent. */
        for (const size_t end = sent_messages + (size_t)sent; sent_messages < end; sent_messages++)
        {
            const size_t run_length = run_lengths[sent_messages];

            *bytes_sent += messages[sent_messages].msg_len;
            sent_datagrams += run_length;
            if (run_length > 1)
            {
                aeron_counter_increment_release(direction->counter);
            }
        }
    }

    return (int)sent_datagrams;
}

/* Returns the length of a buffer's datagrams, or 0 if the buffer is one datagram. */
static size_t rusteron_offload_segment_length(struct msghdr *header)
{
    struct cmsghdr *control;

    for (control = CMSG_FIRSTHDR(header); NULL != control; control = CMSG_NXTHDR(header, control))
    {
        if (SOL_UDP == control->cmsg_level && UDP_GRO == control->cmsg_type)
        {
            int length = 0;
            memcpy(&length, CMSG_DATA(control), sizeof(length));
            return length > 0 ? (size_t)length : 0;
        }
    }

    return 0;
}

/*
 * A coalesced buffer can be longer than the cache next to the processor. Aeron walks over the frames of a datagram, and
 * would wait for each frame's line.
 */
static void rusteron_offload_prefetch(const uint8_t *buffer, size_t length, size_t offset, size_t segment_length)
{
    const size_t end = offset + segment_length < length ? offset + segment_length : length;

    for (; offset < end; offset += RUSTERON_CACHE_LINE_LENGTH)
    {
        __builtin_prefetch(buffer + offset);
    }
}

/* Returns how many buffers are likely there: after a read that got all it asked for, twice as many. */
static uint8_t rusteron_offload_next_read_length(size_t length, int received)
{
    if (received < (int)length)
    {
        return received > 0 ? (uint8_t)received : 1;
    }

    return (uint8_t)(2 * length < AERON_DRIVER_RECEIVER_IO_VECTOR_LENGTH_MAX ?
        2 * length : AERON_DRIVER_RECEIVER_IO_VECTOR_LENGTH_MAX);
}

/* Reads a sender's socket with Aeron's function, unless it was empty a moment ago. */
static int rusteron_offload_read_control(
    rusteron_segmentation_offload_t *offload,
    aeron_udp_channel_transport_t *transport,
    struct mmsghdr *msgvec,
    size_t vlen,
    int64_t *bytes_rcved,
    aeron_udp_transport_recv_func_t recv_func,
    void *clientd)
{
    const int64_t now_ns = aeron_clock_cached_nano_time(offload->sender_clock);
    rusteron_offload_skip_t *skip = &offload->skips[(unsigned int)transport->recv_fd % RUSTERON_SOCKETS];
    int received;

    if (transport->recv_fd == skip->fd && now_ns < skip->until_ns)
    {
        return 0;
    }

    received = aeron_udp_channel_transport_recvmmsg(transport, msgvec, vlen, bytes_rcved, recv_func, clientd);
    skip->fd = transport->recv_fd;
    skip->until_ns = 0 == received ? now_ns + RUSTERON_EMPTY_READ_INTERVAL_NS : now_ns;
    return received;
}

/* Returns the number of buffers that are read, or -1. */
static int rusteron_offload_recvmmsg(
    aeron_udp_channel_transport_t *transport,
    struct mmsghdr *msgvec,
    size_t vlen,
    int64_t *bytes_rcved,
    aeron_udp_transport_recv_func_t recv_func,
    void *clientd)
{
    const rusteron_offload_direction_t *direction = transport->bindings_clientd;
    rusteron_offload_control_t controls[AERON_DRIVER_RECEIVER_IO_VECTOR_LENGTH_MAX];
    uint8_t *read_length;
    size_t length;
    int received, error_code;

    if (NULL == direction)
    {
        return aeron_udp_channel_transport_recvmmsg(transport, msgvec, vlen, bytes_rcved, recv_func, clientd);
    }

    if (&direction->offload->receive != direction)
    {
        return rusteron_offload_read_control(
            direction->offload, transport, msgvec, vlen, bytes_rcved, recv_func, clientd);
    }

    /* The kernel looks for one buffer more than there are, which costs up to a third of a read. */
    read_length = &direction->offload->read_lengths[(unsigned int)transport->recv_fd % RUSTERON_SOCKETS];
    length = *read_length < vlen ? *read_length : vlen;

    for (size_t i = 0; i < length; i++)
    {
        msgvec[i].msg_hdr.msg_control = &controls[i];
        msgvec[i].msg_hdr.msg_controllen = sizeof(controls[i].receive);
    }

    if (1 == length)
    {
        const ssize_t bytes = recvmsg(transport->recv_fd, &msgvec[0].msg_hdr, 0);
        msgvec[0].msg_len = bytes < 0 ? 0 : (unsigned int)bytes;
        received = bytes < 0 ? -1 : 1;
    }
    else
    {
        received = recvmmsg(transport->recv_fd, msgvec, (unsigned int)length, 0, NULL);
    }
    error_code = errno;
    *read_length = rusteron_offload_next_read_length(length, received);

    for (int i = 0; i < received; i++)
    {
        struct msghdr *header = &msgvec[i].msg_hdr;
        uint8_t *buffer = header->msg_iov[0].iov_base;
        const size_t length = msgvec[i].msg_len;
        size_t segment_length = rusteron_offload_segment_length(header);
        size_t offset = 0;

        if (0 == segment_length || segment_length > length)
        {
            segment_length = length;
        }
        else if (segment_length < length)
        {
            aeron_counter_increment_release(direction->counter);
        }

        do
        {
            const size_t remaining = length - offset;
            const size_t datagram_length = remaining < segment_length ? remaining : segment_length;
            uint8_t *datagram = buffer + offset;

            if (0 != offset % RUSTERON_FRAME_ALIGNMENT)
            {
                /* Only frames that Aeron would not send have such lengths. The datagrams before are dispatched. */
                datagram = memmove(buffer, datagram, datagram_length);
            }

            rusteron_offload_prefetch(
                buffer, length, offset + RUSTERON_PREFETCH_DISTANCE * segment_length, segment_length);
            recv_func(
                transport->data_paths,
                transport,
                clientd,
                transport->dispatch_clientd,
                transport->destination_clientd,
                datagram,
                datagram_length,
                header->msg_name,
                NULL);
            offset += datagram_length;
        }
        while (offset < length);

        *bytes_rcved += (int64_t)length;
        header->msg_namelen = sizeof(struct sockaddr_storage);
    }

    /* The vector is also used for transports without ancillary data. */
    for (size_t i = 0; i < length; i++)
    {
        msgvec[i].msg_hdr.msg_control = NULL;
        msgvec[i].msg_hdr.msg_controllen = 0;
    }

    if (received < 0)
    {
        /* A connected socket reports the end of its peer as ECONNREFUSED. */
        if (EINTR == error_code || EAGAIN == error_code || EWOULDBLOCK == error_code || ECONNREFUSED == error_code)
        {
            return 0;
        }

        AERON_SET_ERR(
            error_code,
            "Failed to recvmmsg, fd=%d, recv_fd=%d, connected=%s",
            transport->fd,
            transport->recv_fd,
            NULL != transport->connected_address ? "true" : "false");
        return -1;
    }

    return received;
}

int rusteron_segmentation_offload_install(
    rusteron_segmentation_offload_t **offload,
    aeron_driver_context_t *context,
    rusteron_offload_refused_func_t on_refused)
{
    rusteron_segmentation_offload_t *installed = NULL;

    *offload = NULL;
    if (&aeron_udp_channel_transport_bindings_default != context->udp_channel_transport_bindings)
    {
        return 0;
    }

    if (aeron_alloc((void **)&installed, sizeof(rusteron_segmentation_offload_t)) < 0)
    {
        AERON_APPEND_ERR("%s", "segmentation offload");
        return -1;
    }

    installed->bindings = aeron_udp_channel_transport_bindings_default;
    installed->bindings.init_func = rusteron_offload_init;
    installed->bindings.send_func = rusteron_offload_send;
    installed->bindings.recvmmsg_func = rusteron_offload_recvmmsg;
    installed->bindings.meta_info.name = "segmentation-offload";
    installed->bindings.meta_info.source_symbol = (const void *)rusteron_segmentation_offload_install;
    installed->send.offload = installed;
    installed->receive.offload = installed;
    installed->on_refused = on_refused;
    installed->sender_clock = context->sender_cached_clock;
    memset(installed->read_lengths, 1, sizeof(installed->read_lengths));

    context->udp_channel_transport_bindings = &installed->bindings;
    *offload = installed;
    return 0;
}

static int64_t *rusteron_offload_counter(aeron_counters_manager_t *manager, int32_t key, const char *label)
{
    const int32_t counter_id = aeron_counters_manager_allocate(
        manager,
        RUSTERON_SEGMENTATION_OFFLOAD_COUNTER_TYPE_ID,
        (const uint8_t *)&key,
        sizeof(key),
        label,
        strlen(label));

    if (counter_id < 0)
    {
        AERON_APPEND_ERR("%s", label);
        return NULL;
    }

    aeron_counters_manager_counter_registration_id(manager, counter_id, counter_id);
    aeron_counters_manager_counter_owner_id(manager, counter_id, AERON_NULL_VALUE);
    return aeron_counters_manager_addr(manager, counter_id);
}

int rusteron_segmentation_offload_add_counters(
    rusteron_segmentation_offload_t *offload, aeron_driver_context_t *context)
{
    aeron_counters_manager_t *manager = context->counters_manager;

    offload->send.counter = rusteron_offload_counter(manager, 0, "Sends of several datagrams");
    offload->receive.counter = rusteron_offload_counter(manager, 1, "Reads of several datagrams");
    return NULL == offload->send.counter || NULL == offload->receive.counter ? -1 : 0;
}

void rusteron_segmentation_offload_free(rusteron_segmentation_offload_t *offload)
{
    aeron_free(offload);
}

#else

int rusteron_segmentation_offload_install(
    rusteron_segmentation_offload_t **offload,
    aeron_driver_context_t *context,
    rusteron_offload_refused_func_t on_refused)
{
    (void)context;
    (void)on_refused;
    *offload = NULL;
    return 0;
}

int rusteron_segmentation_offload_add_counters(
    rusteron_segmentation_offload_t *offload, aeron_driver_context_t *context)
{
    (void)offload;
    (void)context;
    return 0;
}

void rusteron_segmentation_offload_free(rusteron_segmentation_offload_t *offload)
{
    (void)offload;
}

#endif
