//go:build cgo

// Go's tool compiles only this folder's C files. This one is the session that the caller in C has, too.
#include "../../c/session.c"
