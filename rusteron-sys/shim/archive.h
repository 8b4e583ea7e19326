/* Headers from which the archive client's bindings are generated. */
#include "aeronc.h"
#include "client/aeron_archive.h"
#include "rusteron_archive.h"
