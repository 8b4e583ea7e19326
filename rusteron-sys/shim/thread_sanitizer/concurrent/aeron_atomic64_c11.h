/* The file that Aeron includes on other processors than x86-64. */
#include "aeron_atomic64_gcc_x86_64.h"
