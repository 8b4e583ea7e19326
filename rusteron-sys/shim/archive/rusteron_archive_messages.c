/*
 * C decodes messages of an archive by its own version of the schema, and trusts their lengths. A text of 0xFFFFFFFF
 * bytes makes C write outside of its buffer (aeron_archive_control_response_poller.c:226 and 272,
 * aeron_archive_async_client.c:438). A text longer than the message makes C return memory that was never written. A
 * block of an unexpected length makes C read lengths at wrong offsets.
 *
 * So C never gets the message itself. It gets a copy of checked parts, with a block of the length that C expects.
 * Messages that C passes over are not checked.
 */
#include <inttypes.h>

#include "c/aeron_archive_client/challenge.h"
#include "c/aeron_archive_client/controlResponse.h"
#include "c/aeron_archive_client/recordingDescriptor.h"
#include "c/aeron_archive_client/recordingSignalEvent.h"
#include "c/aeron_archive_client/recordingSubscriptionDescriptor.h"

#include "aeronc.h"
#include "aeron_alloc.h"
#include "aeron_fragment_assembler.h"
#include "util/aeron_error.h"
#include "client/aeron_archive_client.h"
#include "client/aeron_archive_control_response_poller.h"
#include "rusteron_archive.h"

#define HEADER_LENGTH ((size_t)8)
#define TEXT_LENGTH_LENGTH ((size_t)4)
#define MAX_TEXTS 3

typedef struct rusteron_archive_layout_stct
{
    const char *name;
    /* The block that C decodes, and the block of the schema's first version. Later fields are optional. */
    size_t block_length;
    size_t min_block_length;
    size_t text_count;
    const char *texts[MAX_TEXTS];
}
rusteron_archive_layout_t;

typedef struct rusteron_archive_poll_stct
{
    aeron_controlled_fragment_handler_t delegate;
    void *delegate_clientd;
    bool is_over;
    bool is_refused;
}
rusteron_archive_poll_t;

/* Returns whether C decodes messages with this id. */
static bool rusteron_archive_layout(rusteron_archive_layout_t *layout, uint16_t template_id)
{
    memset(layout, 0, sizeof(*layout));
    switch (template_id)
    {
        case AERON_ARCHIVE_CLIENT_CONTROL_RESPONSE_SBE_TEMPLATE_ID:
            layout->name = "ControlResponse";
            layout->block_length = aeron_archive_client_controlResponse_sbe_block_length();
            layout->min_block_length = aeron_archive_client_controlResponse_version_encoding_offset();
            layout->texts[layout->text_count++] = "errorMessage";
            return true;

        case AERON_ARCHIVE_CLIENT_CHALLENGE_SBE_TEMPLATE_ID:
            layout->name = "Challenge";
            layout->block_length = aeron_archive_client_challenge_sbe_block_length();
            layout->min_block_length = layout->block_length;
            layout->texts[layout->text_count++] = "encodedChallenge";
            return true;

        case AERON_ARCHIVE_CLIENT_RECORDING_DESCRIPTOR_SBE_TEMPLATE_ID:
            layout->name = "RecordingDescriptor";
            layout->block_length = aeron_archive_client_recordingDescriptor_sbe_block_length();
            layout->min_block_length = layout->block_length;
            layout->texts[layout->text_count++] = "strippedChannel";
            layout->texts[layout->text_count++] = "originalChannel";
            layout->texts[layout->text_count++] = "sourceIdentity";
            return true;

        case AERON_ARCHIVE_CLIENT_RECORDING_SUBSCRIPTION_DESCRIPTOR_SBE_TEMPLATE_ID:
            layout->name = "RecordingSubscriptionDescriptor";
            layout->block_length = aeron_archive_client_recordingSubscriptionDescriptor_sbe_block_length();
            layout->min_block_length = layout->block_length;
            layout->texts[layout->text_count++] = "strippedChannel";
            return true;

        case AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_EVENT_SBE_TEMPLATE_ID:
            layout->name = "RecordingSignalEvent";
            layout->block_length = aeron_archive_client_recordingSignalEvent_sbe_block_length();
            layout->min_block_length = layout->block_length;
            return true;

        default:
            return false;
    }
}

static uint32_t rusteron_little_endian(const uint8_t *buffer, size_t length)
{
    uint32_t value = 0;
    for (size_t i = 0; i < length; i++)
    {
        value |= (uint32_t)buffer[i] << (8 * i);
    }
    return value;
}

/* Returns the end of the last text. If the message is shorter than its lengths say, returns 0 with an error. */
static size_t rusteron_archive_checked_length(
    const rusteron_archive_layout_t *layout, size_t block_length, const uint8_t *buffer, size_t length)
{
    if (block_length < layout->min_block_length)
    {
        AERON_SET_ERR(
            RUSTERON_ARCHIVE_MALFORMED_MESSAGE,
            "%s: block of %zu bytes; the minimum is %zu",
            layout->name,
            block_length,
            layout->min_block_length);
        return 0;
    }
    if (length - HEADER_LENGTH < block_length)
    {
        AERON_SET_ERR(
            RUSTERON_ARCHIVE_MALFORMED_MESSAGE,
            "%s: block of %zu bytes; the message has %zu left",
            layout->name,
            block_length,
            length - HEADER_LENGTH);
        return 0;
    }

    size_t end = HEADER_LENGTH + block_length;
    for (size_t i = 0; i < layout->text_count; i++)
    {
        if (length - end < TEXT_LENGTH_LENGTH)
        {
            AERON_SET_ERR(
                RUSTERON_ARCHIVE_MALFORMED_MESSAGE,
                "%s: %s has no length; the message has %zu bytes left of %zu",
                layout->name,
                layout->texts[i],
                length - end,
                TEXT_LENGTH_LENGTH);
            return 0;
        }
        const uint32_t text_length = rusteron_little_endian(buffer + end, TEXT_LENGTH_LENGTH);
        end += TEXT_LENGTH_LENGTH;
        if (length - end < text_length)
        {
            AERON_SET_ERR(
                RUSTERON_ARCHIVE_MALFORMED_MESSAGE,
                "%s: %s of %" PRIu32 " bytes; the message has %zu left",
                layout->name,
                layout->texts[i],
                text_length,
                length - end);
            return 0;
        }
        end += text_length;
    }
    return end;
}

/* C refuses such numbers itself, but then also refuses the next message, whatever it contains. */
static bool rusteron_archive_has_known_code(
    const rusteron_archive_layout_t *layout, uint16_t template_id, const uint8_t *block)
{
    if (AERON_ARCHIVE_CLIENT_CONTROL_RESPONSE_SBE_TEMPLATE_ID == template_id)
    {
        enum aeron_archive_client_controlResponseCode code;
        const size_t offset = aeron_archive_client_controlResponse_code_encoding_offset();
        const int32_t value = (int32_t)rusteron_little_endian(block + offset, sizeof(int32_t));
        if (!aeron_archive_client_controlResponseCode_get(value, &code))
        {
            AERON_SET_ERR(
                RUSTERON_ARCHIVE_MALFORMED_MESSAGE, "%s: code %" PRIi32 " is unknown", layout->name, value);
            return false;
        }
    }
    if (AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_EVENT_SBE_TEMPLATE_ID == template_id)
    {
        enum aeron_archive_client_recordingSignal signal;
        const size_t offset = aeron_archive_client_recordingSignalEvent_signal_encoding_offset();
        const int32_t value = (int32_t)rusteron_little_endian(block + offset, sizeof(int32_t));
        if (!aeron_archive_client_recordingSignal_get(value, &signal))
        {
            AERON_SET_ERR(
                RUSTERON_ARCHIVE_MALFORMED_MESSAGE, "%s: signal %" PRIi32 " is unknown", layout->name, value);
            return false;
        }
    }
    return true;
}

static aeron_controlled_fragment_handler_action_t rusteron_archive_deliver(
    rusteron_archive_poll_t *poll, const uint8_t *buffer, size_t length, aeron_header_t *header)
{
    if (length < HEADER_LENGTH)
    {
        AERON_SET_ERR(
            RUSTERON_ARCHIVE_MALFORMED_MESSAGE,
            "message of %zu bytes; its header has %zu",
            length,
            HEADER_LENGTH);
        poll->is_refused = true;
        return AERON_ACTION_BREAK;
    }

    const size_t block_length = rusteron_little_endian(buffer, sizeof(uint16_t));
    const uint16_t template_id = (uint16_t)rusteron_little_endian(buffer + 2, sizeof(uint16_t));
    const uint16_t schema_id = (uint16_t)rusteron_little_endian(buffer + 4, sizeof(uint16_t));
    if (aeron_archive_client_messageHeader_sbe_schema_id() != schema_id)
    {
        /* The text is C's. */
        AERON_SET_ERR(
            -1,
            "found schema id: %i that doesn't match expected id: %i",
            schema_id,
            aeron_archive_client_messageHeader_sbe_schema_id());
        poll->is_refused = true;
        return AERON_ACTION_BREAK;
    }

    rusteron_archive_layout_t layout;
    if (!rusteron_archive_layout(&layout, template_id))
    {
        return poll->delegate(poll->delegate_clientd, buffer, length, header);
    }

    const size_t end = rusteron_archive_checked_length(&layout, block_length, buffer, length);
    if (0 == end || !rusteron_archive_has_known_code(&layout, template_id, buffer + HEADER_LENGTH))
    {
        poll->is_refused = true;
        return AERON_ACTION_BREAK;
    }

    /*
     * Zeros, as from aeron_alloc(), are the null values of optional fields. They also terminate the last text, as C
     * expects.
     */
    uint8_t *copy = NULL;
    const size_t texts_length = end - HEADER_LENGTH - block_length;
    const size_t copy_length = HEADER_LENGTH + layout.block_length + texts_length;
    if (aeron_alloc((void **)&copy, copy_length + 1) < 0)
    {
        AERON_APPEND_ERR("%s: no memory for a copy of %zu bytes", layout.name, copy_length + 1);
        poll->is_refused = true;
        return AERON_ACTION_ABORT;
    }
    memcpy(copy, buffer, HEADER_LENGTH);
    copy[0] = (uint8_t)layout.block_length;
    copy[1] = (uint8_t)(layout.block_length >> 8);
    memcpy(
        copy + HEADER_LENGTH,
        buffer + HEADER_LENGTH,
        block_length < layout.block_length ? block_length : layout.block_length);
    memcpy(copy + HEADER_LENGTH + layout.block_length, buffer + HEADER_LENGTH + block_length, texts_length);

    const aeron_controlled_fragment_handler_action_t action =
        poll->delegate(poll->delegate_clientd, copy, copy_length, header);
    aeron_free(copy);
    return action;
}

static aeron_controlled_fragment_handler_action_t rusteron_archive_on_message(
    void *clientd, const uint8_t *buffer, size_t length, aeron_header_t *header)
{
    rusteron_archive_poll_t *poll = (rusteron_archive_poll_t *)clientd;
    /*
     * A message of another publisher in the same poll. This poll has its outcome already, so the message has to
     * wait for the next poll, or it would be lost.
     */
    if (poll->is_over)
    {
        return AERON_ACTION_ABORT;
    }
    const aeron_controlled_fragment_handler_action_t action =
        rusteron_archive_deliver(poll, buffer, length, header);
    poll->is_over = AERON_ACTION_BREAK == action || AERON_ACTION_ABORT == action;
    return action;
}

/*
 * As aeron_subscription_controlled_poll() with an assembler, whose delegate gets checked messages. A refused
 * message fails the poll, and is not delivered again.
 */
int rusteron_subscription_controlled_poll(
    aeron_subscription_t *subscription,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit)
{
    aeron_controlled_fragment_assembler_t *assembler = (aeron_controlled_fragment_assembler_t *)clientd;
    rusteron_archive_poll_t poll =
    {
        .delegate = assembler->delegate,
        .delegate_clientd = assembler->delegate_clientd
    };
    assembler->delegate = rusteron_archive_on_message;
    assembler->delegate_clientd = &poll;
    const int result = aeron_subscription_controlled_poll(subscription, handler, clientd, fragment_limit);
    assembler->delegate = poll.delegate;
    assembler->delegate_clientd = poll.delegate_clientd;
    return poll.is_refused ? -1 : result;
}

int rusteron_archive_poll_messages(
    aeron_archive_t *archive,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit)
{
    aeron_archive_control_response_poller_t *poller = aeron_archive_control_response_poller(archive);
    aeron_controlled_fragment_assembler_t *assembler = poller->fragment_assembler;
    const aeron_controlled_fragment_handler_t delegate = assembler->delegate;
    void *delegate_clientd = assembler->delegate_clientd;
    assembler->delegate = handler;
    assembler->delegate_clientd = clientd;
    const int result = rusteron_subscription_controlled_poll(
        poller->subscription, aeron_controlled_fragment_assembler_handler, assembler, fragment_limit);
    assembler->delegate = delegate;
    assembler->delegate_clientd = delegate_clientd;
    return result;
}
