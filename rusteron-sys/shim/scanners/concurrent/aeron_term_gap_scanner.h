/* Replaces Aeron's header of this name, for the reason that aeron_term_scanner.h gives. */
#ifndef AERON_TERM_GAP_SCANNER_H
#define AERON_TERM_GAP_SCANNER_H

#include <stddef.h>
#include <stdint.h>

#include "concurrent/aeron_logbuffer_descriptor.h"
#include "protocol/aeron_udp_protocol.h"
#include "util/aeron_bitutil.h"

typedef void (*aeron_term_gap_scanner_on_gap_detected_func_t)(
    void *clientd, int32_t term_id, int32_t term_offset, size_t length);

/*
 * Returns where the first gap between `term_offset` and `limit_offset` begins, and hands its length to `on_gap_detected`.
 * Without a gap, returns the end of the last frame, which is not before the limit.
 */
inline int32_t aeron_term_gap_scanner_scan_for_gap(
    const uint8_t *buffer,
    int32_t term_id,
    int32_t term_offset,
    int32_t limit_offset,
    aeron_term_gap_scanner_on_gap_detected_func_t on_gap_detected,
    void *clientd)
{
    int32_t offset = term_offset;
    int32_t frame_length, stride;

    do
    {
        AERON_GET_ACQUIRE(frame_length, ((aeron_frame_header_t *)(buffer + offset))->frame_length);
        stride = (int32_t)AERON_ALIGN((uint32_t)frame_length, (uint32_t)AERON_LOGBUFFER_FRAME_ALIGNMENT);
        /* With a length that no frame has, the sum could wrap. */
        if (stride <= 0 || stride > AERON_LOGBUFFER_TERM_MAX_LENGTH)
        {
            break;
        }

        offset += stride;
        while (offset < limit_offset)
        {
            AERON_GET_ACQUIRE(frame_length, ((aeron_frame_header_t *)(buffer + offset))->frame_length);
            if (stride != (int32_t)AERON_ALIGN((uint32_t)frame_length, (uint32_t)AERON_LOGBUFFER_FRAME_ALIGNMENT))
            {
                break;
            }

            offset += stride;
        }
    }
    while (offset < limit_offset);

    if (offset < limit_offset)
    {
        int32_t end = offset + (int32_t)AERON_DATA_HEADER_LENGTH;

        for (; end < limit_offset; end += (int32_t)AERON_DATA_HEADER_LENGTH)
        {
            AERON_GET_ACQUIRE(frame_length, ((aeron_frame_header_t *)(buffer + end))->frame_length);
            if (0 != frame_length)
            {
                break;
            }
        }

        on_gap_detected(clientd, term_id, offset, (size_t)(end - offset));
    }

    return offset;
}

#endif
