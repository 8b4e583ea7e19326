/* What the bindings of the media driver are generated from. */
#include <stddef.h>
#include "aeronc.h"
#include "aeronmd.h"
#include "rusteron_driver_shim.h"
