/* Headers from which the media driver's bindings are generated. */
#include <stddef.h>
#include "aeronc.h"
#include "aeronmd.h"
#include "rusteron_driver_shim.h"
