#if defined(__linux__)
#define _BSD_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_MSC_VER)
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "aeron_alloc.h"
#include "aeron_cnc_file_descriptor.h"
#include "aeron_driver_context.h"
#include "concurrent/aeron_distinct_error_log.h"
#include "util/aeron_clock.h"
#include "util/aeron_error.h"
#include "util/aeron_fileutil.h"
#include "util/aeron_strutil.h"

#include "rusteron_driver_home.h"
#include "rusteron_driver_shim.h"

/*
 * A driver that has hung for a while, or whose files somebody has removed, may find another driver's files under the
 * names of its own. Aeron's driver deletes by name all the same: its directory when it is closed, and log buffers, whose
 * numbers begin anew in each driver. The functions of this file compare what is there with what the driver has mapped,
 * and delete through descriptors of directories: another driver removes the whole directory and makes it anew, so
 * nothing of that driver's can be reached through a descriptor that was opened before.
 */

#if !defined(_MSC_VER)

static int rusteron_open_dir(int parent, const char *name, int flags)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

/* Compares process and start with those that the driver has mapped. */
static rusteron_driver_home_t rusteron_compare_cnc(const aeron_driver_context_t *context, int dir)
{
    const aeron_cnc_metadata_t *mapped = (const aeron_cnc_metadata_t *)context->cnc_map.addr;
    aeron_cnc_metadata_t found;
    const int fd = openat(dir, AERON_CNC_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
    {
        return ENOENT == errno ? RUSTERON_DRIVER_HOME_GONE : RUSTERON_DRIVER_HOME_UNKNOWN;
    }

    const ssize_t length = pread(fd, &found, sizeof(found), 0);
    close(fd);
    if (length < 0)
    {
        return RUSTERON_DRIVER_HOME_UNKNOWN;
    }

    return sizeof(found) == length &&
        mapped->start_timestamp == found.start_timestamp &&
        mapped->pid == found.pid ? RUSTERON_DRIVER_HOME_OWN : RUSTERON_DRIVER_HOME_REPLACED;
}

rusteron_driver_home_t rusteron_driver_home(aeron_driver_context_t *context, int *dir)
{
    const int fd = rusteron_open_dir(AT_FDCWD, context->aeron_dir, 0);
    if (fd < 0)
    {
        return ENOENT == errno || ENOTDIR == errno ? RUSTERON_DRIVER_HOME_GONE : RUSTERON_DRIVER_HOME_UNKNOWN;
    }

    const rusteron_driver_home_t home = rusteron_compare_cnc(context, fd);
    if (NULL != dir && RUSTERON_DRIVER_HOME_OWN == home)
    {
        *dir = fd;
    }
    else
    {
        close(fd);
    }

    return home;
}

/* What others delete meanwhile is deleted, too. Takes the descriptor. */
static int rusteron_delete_contents(int dir, const char *path)
{
    int result = 0;
    DIR *entries = fdopendir(dir);
    if (NULL == entries)
    {
        AERON_SET_ERR(errno, "could not read %s", path);
        close(dir);
        return -1;
    }

    /* Directories first: the files tell whose they are, if the process is killed meanwhile. */
    for (int pass = 0; pass < 2; pass++)
    {
        struct dirent *entry;
        rewinddir(entries);
        while (0 == result && NULL != (entry = readdir(entries)))
        {
            const char *name = entry->d_name;
            if (0 == strcmp(".", name) || 0 == strcmp("..", name))
            {
                continue;
            }

            const int child = rusteron_open_dir(dir, name, O_NOFOLLOW);
            if (child >= 0)
            {
                result = rusteron_delete_contents(child, name);
            }
            else if (0 == pass)
            {
                continue;
            }

            if (0 == result && unlinkat(dir, name, child >= 0 ? AT_REMOVEDIR : 0) < 0 && ENOENT != errno)
            {
                AERON_SET_ERR(errno, "could not delete %s in %s", name, path);
                result = -1;
            }
        }
    }

    closedir(entries);
    return result;
}

int rusteron_delete_dir(const char *path, int dir)
{
    struct stat opened;
    struct stat named;
    if (fstat(dir, &opened) < 0)
    {
        AERON_SET_ERR(errno, "could not read %s", path);
        close(dir);
        return -1;
    }

    if (rusteron_delete_contents(dir, path) < 0)
    {
        return -1;
    }

    if (0 == lstat(path, &named) &&
        named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino &&
        rmdir(path) < 0 &&
        ENOENT != errno)
    {
        AERON_SET_ERR(errno, "could not delete %s", path);
        return -1;
    }

    return 0;
}

/* A driver of this process whose user is told once if the directory is lost. */
typedef struct rusteron_home_watch_stct
{
    const aeron_driver_context_t *context;
    rusteron_driver_home_lost_t on_lost;
    struct rusteron_home_watch_stct *next;
}
rusteron_home_watch_t;

static pthread_mutex_t rusteron_home_watches_lock = PTHREAD_MUTEX_INITIALIZER;
static rusteron_home_watch_t *rusteron_home_watches = NULL;

int rusteron_driver_watch_home(aeron_driver_context_t *context, rusteron_driver_home_lost_t on_lost)
{
    rusteron_home_watch_t *watch = NULL;
    if (aeron_alloc((void **)&watch, sizeof(rusteron_home_watch_t)) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        return -1;
    }

    watch->context = context;
    watch->on_lost = on_lost;
    pthread_mutex_lock(&rusteron_home_watches_lock);
    watch->next = rusteron_home_watches;
    rusteron_home_watches = watch;
    pthread_mutex_unlock(&rusteron_home_watches_lock);
    return 0;
}

void rusteron_driver_unwatch_home(aeron_driver_context_t *context)
{
    pthread_mutex_lock(&rusteron_home_watches_lock);
    rusteron_home_watch_t **link = &rusteron_home_watches;
    while (NULL != *link && (*link)->context != context)
    {
        link = &(*link)->next;
    }

    rusteron_home_watch_t *watch = *link;
    if (NULL != watch)
    {
        *link = watch->next;
    }
    pthread_mutex_unlock(&rusteron_home_watches_lock);
    aeron_free(watch);
}

/* Returns the function to call, once. */
static rusteron_driver_home_lost_t rusteron_take_on_lost(const aeron_driver_context_t *context)
{
    rusteron_driver_home_lost_t on_lost = NULL;
    pthread_mutex_lock(&rusteron_home_watches_lock);
    for (rusteron_home_watch_t *watch = rusteron_home_watches; NULL != watch; watch = watch->next)
    {
        if (watch->context == context)
        {
            on_lost = watch->on_lost;
            watch->on_lost = NULL;
        }
    }
    pthread_mutex_unlock(&rusteron_home_watches_lock);
    return on_lost;
}

void rusteron_driver_check_home(aeron_driver_context_t *context)
{
    const rusteron_driver_home_t home = rusteron_driver_home(context, NULL);
    if (RUSTERON_DRIVER_HOME_GONE == home || RUSTERON_DRIVER_HOME_REPLACED == home)
    {
        const rusteron_driver_home_lost_t on_lost = rusteron_take_on_lost(context);
        if (NULL != on_lost)
        {
            on_lost(context->aeron_dir, home);
        }
    }
}

/* The file of a log buffer that a driver of this process has made. */
typedef struct rusteron_log_file_stct
{
    const aeron_mapped_raw_log_t *log;
    dev_t device;
    ino_t inode;
    uint64_t length;
    struct rusteron_log_file_stct *next;
    bool is_sparse;
    char path[];
}
rusteron_log_file_t;

static pthread_mutex_t rusteron_log_files_lock = PTHREAD_MUTEX_INITIALIZER;
static rusteron_log_file_t *rusteron_log_files = NULL;

static int rusteron_log_file_add(const aeron_mapped_raw_log_t *log, const char *path, bool is_sparse)
{
    struct stat status;
    rusteron_log_file_t *file = NULL;
    const size_t path_size = strlen(path) + 1;

    if (stat(path, &status) < 0)
    {
        AERON_SET_ERR(errno, "could not find the log buffer that was made: %s", path);
        return -1;
    }

    if (aeron_alloc((void **)&file, sizeof(rusteron_log_file_t) + path_size) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        return -1;
    }

    file->log = log;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->length = (uint64_t)status.st_size;
    file->is_sparse = is_sparse;
    memcpy(file->path, path, path_size);
    pthread_mutex_lock(&rusteron_log_files_lock);
    file->next = rusteron_log_files;
    rusteron_log_files = file;
    pthread_mutex_unlock(&rusteron_log_files_lock);
    return 0;
}

static rusteron_log_file_t *rusteron_log_file_take(const aeron_mapped_raw_log_t *log)
{
    pthread_mutex_lock(&rusteron_log_files_lock);
    rusteron_log_file_t **link = &rusteron_log_files;
    while (NULL != *link && (*link)->log != log)
    {
        link = &(*link)->next;
    }

    rusteron_log_file_t *file = *link;
    if (NULL != file)
    {
        *link = file->next;
    }
    pthread_mutex_unlock(&rusteron_log_files_lock);
    return file;
}

/* Deletes the file if it is still the one of that name. Aeron tries again, later, if it is and cannot be deleted. */
static bool rusteron_log_file_delete(const rusteron_log_file_t *file, const char *path)
{
    char dir[AERON_MAX_PATH];
    struct stat status;
    const char *separator = strrchr(path, '/');
    const size_t length = NULL != separator ? (size_t)(separator - path) : 0;
    if (NULL == separator || length >= sizeof(dir))
    {
        return true;
    }

    memcpy(dir, path, length);
    dir[length] = '\0';
    const int fd = rusteron_open_dir(AT_FDCWD, dir, 0);
    if (fd < 0)
    {
        return ENOENT == errno || ENOTDIR == errno;
    }

    const bool is_own = 0 == fstatat(fd, separator + 1, &status, AT_SYMLINK_NOFOLLOW) &&
        status.st_dev == file->device &&
        status.st_ino == file->inode;
    const bool is_deleted = !is_own || 0 == unlinkat(fd, separator + 1, 0) || ENOENT == errno;
    close(fd);
    return is_deleted;
}

int rusteron_raw_log_map(
    aeron_mapped_raw_log_t *mapped_raw_log,
    const char *path,
    bool use_sparse_files,
    uint64_t term_length,
    uint64_t page_size)
{
    if (aeron_raw_log_map(mapped_raw_log, path, use_sparse_files, term_length, page_size) < 0)
    {
        AERON_APPEND_ERR("%s", "");
        return -1;
    }

    if (rusteron_log_file_add(mapped_raw_log, path, use_sparse_files) < 0)
    {
        (void)aeron_raw_log_free(mapped_raw_log, path);
        return -1;
    }

    return 0;
}

bool rusteron_raw_log_free(aeron_mapped_raw_log_t *mapped_raw_log, const char *path)
{
    /* Without a name, Aeron unmaps the file. */
    if (!aeron_raw_log_free(mapped_raw_log, NULL))
    {
        return false;
    }

    rusteron_log_file_t *file = rusteron_log_file_take(mapped_raw_log);
    if (NULL != file && NULL != path && !rusteron_log_file_delete(file, path))
    {
        pthread_mutex_lock(&rusteron_log_files_lock);
        file->next = rusteron_log_files;
        rusteron_log_files = file;
        pthread_mutex_unlock(&rusteron_log_files_lock);
        return false;
    }

    /* Aeron's function sets the length to 0, and its caller then takes 0 from the counter of mapped bytes. */
    aeron_free(file);
    return true;
}

/*
 * The space for which no log buffer has a claim. A system call for each sparse log buffer finds what it has taken: a
 * file that was deleted, or that the driver no longer finds, has no claim on what others see as free.
 */
static uint64_t rusteron_unclaimed_fs_space(const char *dir)
{
    const uint64_t block_size = 512;
    uint64_t claimed = 0;
    struct stat status;
    const uint64_t usable = aeron_usable_fs_space(dir);

    if (stat(dir, &status) < 0)
    {
        return usable;
    }

    const dev_t device = status.st_dev;
    pthread_mutex_lock(&rusteron_log_files_lock);
    for (const rusteron_log_file_t *file = rusteron_log_files; NULL != file; file = file->next)
    {
        if (file->is_sparse &&
            device == file->device &&
            0 == stat(file->path, &status) &&
            status.st_dev == file->device &&
            status.st_ino == file->inode)
        {
            const uint64_t taken = (uint64_t)status.st_blocks * block_size;
            claimed += taken < file->length ? file->length - taken : 0;
        }
    }
    pthread_mutex_unlock(&rusteron_log_files_lock);
    return claimed < usable ? usable - claimed : 0;
}

#else

static uint64_t rusteron_unclaimed_fs_space(const char *dir)
{
    return aeron_usable_fs_space(dir);
}

/* Files that are mapped cannot be replaced here. */
rusteron_driver_home_t rusteron_driver_home(aeron_driver_context_t *context, int *dir)
{
    (void)context;
    (void)dir;
    return RUSTERON_DRIVER_HOME_UNKNOWN;
}

int rusteron_delete_dir(const char *path, int dir)
{
    (void)path;
    (void)dir;
    return -1;
}

int rusteron_driver_watch_home(aeron_driver_context_t *context, rusteron_driver_home_lost_t on_lost)
{
    (void)context;
    (void)on_lost;
    return 0;
}

void rusteron_driver_unwatch_home(aeron_driver_context_t *context)
{
    (void)context;
}

void rusteron_driver_check_home(aeron_driver_context_t *context)
{
    (void)context;
}

#endif

/*
 * Checks before a log buffer is made, in the conductor and in the agent that makes it. Its clients would look for it under a name that leads to nothing, or to
 * another driver's file.
 */
int rusteron_driver_context_run_storage_checks(aeron_driver_context_t *context, uint64_t log_length)
{
    switch (rusteron_driver_home(context, NULL))
    {
        case RUSTERON_DRIVER_HOME_REPLACED:
            AERON_SET_ERR(
                EBUSY,
                "%s: another driver has replaced the directory of this driver; connect again to use that driver",
                context->aeron_dir);
            return -1;

        case RUSTERON_DRIVER_HOME_GONE:
            if (!aeron_is_directory(context->aeron_dir))
            {
                AERON_SET_ERR(
                    ENOENT,
                    "%s: the directory was removed while the driver ran; start the driver again",
                    context->aeron_dir);
                return -1;
            }
            break;

        case RUSTERON_DRIVER_HOME_OWN:
        case RUSTERON_DRIVER_HOME_UNKNOWN:
            break;
    }

    return aeron_driver_context_run_storage_checks(context, log_length);
}

void rusteron_driver_context_apply_storage_checks(aeron_driver_context_t *context, bool count_sparse)
{
    /* Aeron chooses the function by the environment, and forgets it in the setter of the checks. */
    context->usable_fs_space_func = count_sparse ? rusteron_unclaimed_fs_space : aeron_usable_fs_space;
}

#if defined(_MSC_VER)

int rusteron_map_existing_file(aeron_mapped_file_t *mapped_file, const char *path)
{
    return aeron_map_existing_file(mapped_file, path);
}

bool rusteron_error_log_exists(const uint8_t *buffer, size_t buffer_size)
{
    return aeron_error_log_exists(buffer, buffer_size);
}

#else

/* The CnC file that a launch in this thread has found in its directory. */
static _Thread_local char rusteron_former_cnc[AERON_MAX_PATH];

int rusteron_map_existing_file(aeron_mapped_file_t *mapped_file, const char *path)
{
    snprintf(rusteron_former_cnc, sizeof(rusteron_former_cnc), "%s", path);
    return aeron_map_existing_file(mapped_file, path);
}

static void rusteron_save_error(
    int32_t observation_count,
    int64_t first_observation_timestamp,
    int64_t last_observation_timestamp,
    const char *error,
    size_t error_length,
    void *clientd)
{
    char first[AERON_FORMAT_DATE_MAX_LENGTH];
    char last[AERON_FORMAT_DATE_MAX_LENGTH];
    aeron_format_date(first, sizeof(first) - 1, first_observation_timestamp);
    aeron_format_date(last, sizeof(last) - 1, last_observation_timestamp);
    fprintf(
        (FILE *)clientd,
        "***\n%" PRId32 " observations from %s to %s for:\n %.*s\n",
        observation_count,
        first,
        last,
        (int)error_length,
        error);
}

/*
 * A launch saves the errors of the driver before beside the directory, often in /dev/shm, where every user can make
 * files and links. Aeron opens the name, which others can foresee, and writes to what is there. This makes a file for
 * its user alone, or prints the errors. Returns false, so that Aeron saves nothing.
 */
bool rusteron_error_log_exists(const uint8_t *buffer, size_t buffer_size)
{
    if (!aeron_error_log_exists(buffer, buffer_size))
    {
        return false;
    }

    char date[AERON_FORMAT_DATE_MAX_LENGTH];
    char path[AERON_MAX_PATH + sizeof(date) + sizeof("--error.log")];
    char *name = strrchr(rusteron_former_cnc, '/');
    if (NULL != name)
    {
        *name = '\0';
    }
    aeron_format_date(date, sizeof(date) - 1, aeron_epoch_clock());
    for (char *colon = date; NULL != (colon = strchr(colon, ':'));)
    {
        *colon = '-';
    }
    snprintf(path, sizeof(path), "%s-%s-error.log", rusteron_former_cnc, date);

    /* With O_EXCL, a link is not followed either. */
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (NULL == file)
    {
        fprintf(stderr, "ERROR: Failed to save existing errors to: %s: %s\n", path, strerror(errno));
        if (fd >= 0)
        {
            close(fd);
        }
    }
    FILE *out = NULL == file ? stderr : file;
    const size_t errors = aeron_error_log_read(buffer, buffer_size, rusteron_save_error, out, 0);
    fprintf(out, "\n%zu distinct errors observed.\n", errors);
    if (NULL != file)
    {
        fclose(file);
        fprintf(stderr, "WARNING: Existing errors saved to: %s\n", path);
    }
    return false;
}

#endif
