/* What the bindings of the archive client are generated from. */
#include "aeronc.h"
#include "client/aeron_archive.h"
#include "rusteron_archive.h"
