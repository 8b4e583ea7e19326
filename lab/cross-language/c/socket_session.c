/*
 * A session without Aeron: a pair of connected Unix sockets, whose other end is a process that
 * sends each message back, which is right because the response to a `ping` equals the request. It
 * shows what the operating system alone takes. Both ends block in the kernel, or poll if the idle
 * strategy is `spin`.
 */
#define _POSIX_C_SOURCE 200809L

#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a `ping`, which a caller sends when the last is back: the kernel does not split it. */
#define MESSAGE_CAPACITY 64

struct session_stct
{
    int socket;
    pid_t server;
    bool is_polling;
    uint8_t message[MESSAGE_CAPACITY];
};

/* Returns the length of the next message, 0 at the end and -1 after a failure. */
static ssize_t receive(int socket, uint8_t *message, bool is_polling)
{
    ssize_t length;
    do
    {
        length = recv(socket, message, MESSAGE_CAPACITY, is_polling ? MSG_DONTWAIT : 0);
    }
    while (length < 0 && (EAGAIN == errno || EINTR == errno));
    return length;
}

static void serve(int socket, bool is_polling)
{
    uint8_t message[MESSAGE_CAPACITY];
    ssize_t length;
    while ((length = receive(socket, message, is_polling)) > 0)
    {
        if (length != send(socket, message, (size_t)length, MSG_NOSIGNAL))
        {
            break;
        }
    }
    _exit(0);
}

session_result_t session_connect(session_t **session, const session_options_t *options)
{
    int sockets[2];
    session_t *connected = calloc(1, sizeof(session_t));
    if (NULL == connected || 0 != socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
    {
        free(connected);
        return SESSION_NOT_CONNECTED;
    }
    connected->socket = sockets[0];
    connected->is_polling = 0 == strcmp(options->idle, "spin");
    connected->server = fork();
    if (0 == connected->server)
    {
        close(sockets[0]);
        serve(sockets[1], connected->is_polling);
    }
    close(sockets[1]);
    if (connected->server < 0)
    {
        close(sockets[0]);
        free(connected);
        return SESSION_NOT_CONNECTED;
    }
    *session = connected;
    return SESSION_OK;
}

session_result_t session_send(session_t *session, const uint8_t *message, size_t length, int64_t deadline_ns)
{
    (void)deadline_ns;
    if (length > MESSAGE_CAPACITY)
    {
        return SESSION_INVALID_REQUEST;
    }
    const ssize_t sent = send(session->socket, message, length, MSG_NOSIGNAL);
    return (ssize_t)length == sent ? SESSION_OK : SESSION_NOT_CONNECTED;
}

session_result_t session_receive(session_t *session, const uint8_t **message, size_t *length, int64_t deadline_ns)
{
    (void)deadline_ns;
    const ssize_t received = receive(session->socket, session->message, session->is_polling);
    if (received <= 0)
    {
        return SESSION_NOT_CONNECTED;
    }
    *message = session->message;
    *length = (size_t)received;
    return SESSION_OK;
}

void session_close(session_t *session)
{
    close(session->socket);
    /* Not by the end of its input: processes that have begun since then share the socket. */
    kill(session->server, SIGKILL);
    waitpid(session->server, NULL, 0);
    free(session);
}

const char *session_error(void)
{
    return strerror(errno);
}
