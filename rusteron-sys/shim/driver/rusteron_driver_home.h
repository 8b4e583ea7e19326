#ifndef RUSTERON_DRIVER_HOME_H
#define RUSTERON_DRIVER_HOME_H

#include "aeron_driver_context.h"
#include "util/aeron_fileutil.h"

/* Calls the function of rusteron_driver_watch_home() if the driver's directory is lost. For the conductor's timer. */
void rusteron_driver_check_home(aeron_driver_context_t *context);

#if !defined(_MSC_VER)
/* Map and free log buffers as Aeron's functions do, and delete a file only if it is the one that was mapped. */
int rusteron_raw_log_map(
    aeron_mapped_raw_log_t *mapped_raw_log,
    const char *path,
    bool use_sparse_files,
    uint64_t term_length,
    uint64_t page_size);

bool rusteron_raw_log_free(aeron_mapped_raw_log_t *mapped_raw_log, const char *path);
#endif

#endif
