/*
 * Found in the place of the codec of this name: each C file that decodes messages of an archive includes it. There,
 * aeron_subscription_controlled_poll() becomes the function that checks messages before C decodes them.
 */
#ifndef RUSTERON_ARCHIVE_MESSAGE_HEADER_H
#define RUSTERON_ARCHIVE_MESSAGE_HEADER_H

/* The codec itself: the other codecs include the one that lies beside them. */
#include "c/aeron_archive_client/controlResponse.h"

/* Declares the function that the other one stands for, so that the name is replaced in calls only. */
#include "aeronc.h"

int rusteron_archive_controlled_poll(
    aeron_subscription_t *subscription,
    aeron_controlled_fragment_handler_t handler,
    void *clientd,
    size_t fragment_limit);

#define aeron_subscription_controlled_poll rusteron_archive_controlled_poll

#endif
