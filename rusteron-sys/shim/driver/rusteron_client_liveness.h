/* Clients of a driver whose process has ended. */
#ifndef RUSTERON_CLIENT_LIVENESS_H
#define RUSTERON_CLIENT_LIVENESS_H

#include "aeron_driver_conductor.h"

#include "rusteron_beside.h"

/* What the driver of a conductor has behind C's structure. */
rusteron_beside_t *rusteron_beside(aeron_driver_conductor_t *conductor);

/* Called after a client's command: a client locks its byte before it adds anything. */
void rusteron_look_at_client(aeron_driver_conductor_t *conductor, int64_t client_id);

/* Called in each cycle of the conductor: ends the clients whose process has provably ended. */
void rusteron_look_at_clients(aeron_driver_conductor_t *conductor);

/* Called when the conductor is closed. */
void rusteron_forget_all_clients(aeron_driver_conductor_t *conductor);

#endif
