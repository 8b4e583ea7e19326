/*
 * Replaces Aeron's header of this name. A loop that adds each frame's length waits for one line of memory after the
 * other, because the length is where the next address comes from. Frames of a stream often have equal lengths. The
 * inner loop here adds the length of the frame before, so the processor fetches several lines at once.
 */
#ifndef AERON_TERM_SCANNER_H
#define AERON_TERM_SCANNER_H

#include <stddef.h>
#include <stdint.h>

#include "concurrent/aeron_logbuffer_descriptor.h"
#include "util/aeron_bitutil.h"

/*
 * Returns how many bytes from `buffer` on are complete frames that fit into both lengths. If the first frame alone is
 * longer, returns its length, negated. Of a padding frame only the header counts. It comes last, and `padding` is the
 * rest of it. A frame whose length cannot be right ends the scan as one that is not there yet.
 */
inline int32_t aeron_term_scanner_scan_for_availability(
    const uint8_t *buffer, int32_t term_length_left, int32_t max_length, int32_t *padding)
{
    const int32_t limit = max_length < term_length_left ? max_length : term_length_left;
    int32_t available = 0;

    *padding = 0;
    do
    {
        aeron_frame_header_t *frame = (aeron_frame_header_t *)(buffer + available);
        int32_t frame_length, stride, length;

        AERON_GET_ACQUIRE(frame_length, frame->frame_length);
        stride = (int32_t)AERON_ALIGN((uint32_t)frame_length, (uint32_t)AERON_LOGBUFFER_FRAME_ALIGNMENT);
        if (stride <= 0)
        {
            break;
        }

        length = stride;
        if (AERON_HDR_TYPE_PAD == frame->type)
        {
            /* Callers add the padding to positions. Aeron never writes padding beyond the term, so such a frame is corrupt. */
            if (stride > term_length_left - available)
            {
                break;
            }
            length = (int32_t)AERON_DATA_HEADER_LENGTH;
        }

        if (length > limit - available)
        {
            available = 0 == available ? -length : available;
            break;
        }

        available += length;
        *padding = stride - length;

        while (0 == *padding && stride <= limit - available)
        {
            frame = (aeron_frame_header_t *)(buffer + available);
            AERON_GET_ACQUIRE(frame_length, frame->frame_length);
            if (stride != (int32_t)AERON_ALIGN((uint32_t)frame_length, (uint32_t)AERON_LOGBUFFER_FRAME_ALIGNMENT) ||
                AERON_HDR_TYPE_PAD == frame->type)
            {
                break;
            }

            available += stride;
        }
    }
    while (0 == *padding && available < limit);

    return available;
}

#endif
