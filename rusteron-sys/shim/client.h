/* Headers from which the client's bindings are generated. */
#include "aeronc.h"
#include "aeron_client_error.h"
#include "aeron_common.h"
#include "aeron_counters.h"
#include "rusteron_shim.h"
