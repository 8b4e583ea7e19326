#if defined(__linux__)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#endif

#include "aeron_client.h"
#include "aeron_cnc_file_descriptor.h"
#include "aeron_context.h"
#include "concurrent/aeron_mpsc_rb.h"
#include "reports/aeron_loss_reporter.h"

#include "rusteron_beside.h"
#include "rusteron_shim.h"

#if defined(__linux__)

/*
 * File systems whose files are mapped by processes of this host only, and whose kernel code counts a mapping as the
 * file that processes open. An overlay counts the file below it, and other hosts may have mapped a file of a network.
 */
static bool rusteron_knows_writers(int fd)
{
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
    {
        return false;
    }

    switch ((unsigned long)status.f_type & 0xFFFFFFFFul)
    {
        case 0x01021994ul: /* tmpfs */
        case 0x0000EF53ul: /* ext4 */
        case 0x58465342ul: /* XFS */
        case 0x9123683Eul: /* Btrfs */
            return true;

        default:
            return false;
    }
}

/* Opens a regular file. Opening a pipe would wait without O_NONBLOCK. */
static int rusteron_open_regular(const char *path, int flags, struct stat *status)
{
    const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
    {
        return -1;
    }

    if (fstat(fd, status) < 0 || !S_ISREG(status->st_mode))
    {
        close(fd);
        return -1;
    }

    return fd;
}

static bool rusteron_is_at(const char *path, const struct stat *status)
{
    struct stat current;
    return 0 == stat(path, &current) && current.st_dev == status->st_dev && current.st_ino == status->st_ino;
}

int rusteron_open_loss_report(const char *aeron_dir)
{
    char path[AERON_MAX_PATH];
    struct stat status;
    if (aeron_loss_reporter_resolve_filename(aeron_dir, path, sizeof(path)) < 0)
    {
        aeron_err_clear();
        return -1;
    }
    return rusteron_open_regular(path, O_RDONLY, &status);
}

int rusteron_driver_watch(const char *aeron_dir, int64_t *start_timestamp, int64_t *pid)
{
    char cnc_path[AERON_MAX_PATH];
    struct stat cnc_status;
    aeron_cnc_metadata_t metadata = { 0 };
    int loss_fd = -1;

    if (aeron_cnc_resolve_filename(aeron_dir, cnc_path, sizeof(cnc_path)) < 0)
    {
        aeron_err_clear();
        return -1;
    }

    const int cnc_fd = rusteron_open_regular(cnc_path, O_RDONLY, &cnc_status);
    if (cnc_fd < 0)
    {
        return -1;
    }

    /* A driver maps its loss report before it writes the version. */
    if (sizeof(metadata) == pread(cnc_fd, &metadata, sizeof(metadata), 0) &&
        aeron_semantic_version_major(AERON_CNC_VERSION) == aeron_semantic_version_major(metadata.cnc_version))
    {
        loss_fd = rusteron_open_loss_report(aeron_dir);
    }

    /*
     * Another driver deletes both files before it makes either. So this loss report belongs to the driver whose
     * version was read. The signal for a lease that others break is one that is ignored by default.
     */
    if (loss_fd >= 0 &&
        (!rusteron_is_at(cnc_path, &cnc_status) ||
        !rusteron_knows_writers(loss_fd) ||
        fcntl(loss_fd, F_SETSIG, SIGURG) < 0))
    {
        close(loss_fd);
        loss_fd = -1;
    }

    close(cnc_fd);
    *start_timestamp = metadata.start_timestamp;
    *pid = metadata.pid;
    return loss_fd;
}

bool rusteron_driver_is_gone(int watch)
{
    /* The kernel grants this lease only while no process has the file open or mapped for writing. */
    if (fcntl(watch, F_SETLEASE, F_RDLCK) < 0)
    {
        return false;
    }

    fcntl(watch, F_SETLEASE, F_UNLCK);
    return true;
}

void rusteron_driver_unwatch(int watch)
{
    close(watch);
}

void rusteron_driver_mark_gone(const char *aeron_dir, int64_t start_timestamp, int64_t pid)
{
    char path[AERON_MAX_PATH];
    struct stat status;
    aeron_cnc_metadata_t metadata;

    if (aeron_cnc_resolve_filename(aeron_dir, path, sizeof(path)) < 0)
    {
        aeron_err_clear();
        return;
    }

    const int fd = rusteron_open_regular(path, O_RDWR, &status);
    if (fd < 0)
    {
        return;
    }

    /*
     * Another driver may have replaced the file. Aeron has yet to check its lengths. The heartbeat of a driver that has
     * closed its files stays: it says how the driver ended.
     */
    if (sizeof(metadata) == pread(fd, &metadata, sizeof(metadata), 0) &&
        metadata.start_timestamp == start_timestamp &&
        metadata.pid == pid &&
        metadata.to_driver_buffer_length > 0)
    {
        const int64_t gone_ms = RUSTERON_HEARTBEAT_OF_GONE_DRIVER;
        int64_t heartbeat_ms = AERON_NULL_VALUE;
        const off_t offset = (off_t)AERON_CNC_VERSION_AND_META_DATA_LENGTH + metadata.to_driver_buffer_length -
            (off_t)AERON_RB_TRAILER_LENGTH + (off_t)offsetof(aeron_rb_descriptor_t, consumer_heartbeat);
        if (offset > 0 && offset + (off_t)sizeof(gone_ms) <= status.st_size &&
            sizeof(heartbeat_ms) == pread(fd, &heartbeat_ms, sizeof(heartbeat_ms), offset) &&
            AERON_NULL_VALUE != heartbeat_ms &&
            sizeof(gone_ms) != pwrite(fd, &gone_ms, sizeof(gone_ms), offset))
        {
            /* Aeron then waits until the heartbeat is old. */
        }
    }

    close(fd);
}

static struct flock rusteron_byte_of(int64_t client_id, short type)
{
    return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)client_id, .l_len = 1 };
}

/*
 * Children that were forked meanwhile share the lock, so that it may outlive the client. Without a
 * lock, the driver goes by the client's heartbeat.
 */
static void rusteron_lock_client(int watch, int64_t client_id)
{
    struct flock lock = rusteron_byte_of(client_id, F_RDLCK);
    (void)fcntl(watch, F_OFD_SETLK, &lock);
}

bool rusteron_is_client_locked(int loss_report, int64_t client_id)
{
    /* Asks for what would be in the way. A lock of more than this byte is no client's. */
    struct flock lock = rusteron_byte_of(client_id, F_WRLCK);
    return 0 == fcntl(loss_report, F_OFD_GETLK, &lock) &&
        F_RDLCK == lock.l_type && (off_t)client_id == lock.l_start && 1 == lock.l_len;
}

int rusteron_lock_dir(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
    {
        const int result = EWOULDBLOCK == errno ? RUSTERON_LOCK_BUSY : RUSTERON_LOCK_NONE;
        close(fd);
        return result;
    }

    return fd < 0 ? RUSTERON_LOCK_NONE : fd;
}

/* Children that were forked meanwhile share the lock: the close alone would leave it to them. */
void rusteron_unlock_dir(int lock)
{
    flock(lock, LOCK_UN);
    close(lock);
}

#else

int rusteron_driver_watch(const char *aeron_dir, int64_t *start_timestamp, int64_t *pid)
{
    (void)aeron_dir;
    (void)start_timestamp;
    (void)pid;
    return -1;
}

bool rusteron_driver_is_gone(int watch)
{
    (void)watch;
    return false;
}

void rusteron_driver_unwatch(int watch)
{
    (void)watch;
}

void rusteron_driver_mark_gone(const char *aeron_dir, int64_t start_timestamp, int64_t pid)
{
    (void)aeron_dir;
    (void)start_timestamp;
    (void)pid;
}

int rusteron_lock_dir(const char *dir)
{
    (void)dir;
    return RUSTERON_LOCK_NONE;
}

void rusteron_unlock_dir(int lock)
{
    (void)lock;
}

static void rusteron_lock_client(int watch, int64_t client_id)
{
    (void)watch;
    (void)client_id;
}

int rusteron_open_loss_report(const char *aeron_dir)
{
    (void)aeron_dir;
    return -1;
}

bool rusteron_is_client_locked(int loss_report, int64_t client_id)
{
    (void)loss_report;
    (void)client_id;
    return false;
}

#endif

int rusteron_client_watch(aeron_t *client, int64_t *pid)
{
    const aeron_cnc_metadata_t *mapped = (const aeron_cnc_metadata_t *)client->context->cnc_map.addr;
    int64_t start_timestamp;
    const int watch = rusteron_driver_watch(client->context->aeron_dir, &start_timestamp, pid);

    /* Another driver may have replaced the one that the client has mapped. */
    if (watch >= 0 && (mapped->start_timestamp != start_timestamp || mapped->pid != *pid))
    {
        rusteron_driver_unwatch(watch);
        return -1;
    }

    if (watch >= 0)
    {
        rusteron_lock_client(watch, client->conductor.client_id);
    }
    return watch;
}

void rusteron_client_end_driver(aeron_t *client)
{
    aeron_client_conductor_t *conductor = &client->conductor;

    rusteron_client_look_at_driver(client);

    if (AERON_NULL_VALUE != aeron_mpsc_rb_consumer_heartbeat_time_value(&conductor->to_driver_buffer))
    {
        aeron_mpsc_rb_consumer_heartbeat_time(
            &conductor->to_driver_buffer, RUSTERON_HEARTBEAT_OF_GONE_DRIVER);
    }
}
