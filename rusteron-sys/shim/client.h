/* What the bindings of the client are generated from. */
#include "aeronc.h"
#include "aeron_client_error.h"
#include "aeron_common.h"
#include "aeron_counters.h"
#include "rusteron_shim.h"
