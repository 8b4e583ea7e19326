//go:build !in_process

// Go's tool compiles only this folder's C files. This one is the session that the caller in C has, too. With the tag
// in_process, the library of the service has it.
#include "../../c/session.c"
