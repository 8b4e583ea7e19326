package main

// #include <stdint.h>
import "C"

import "runtime/cgo"

// answerCallback is the function that the library calls. The context is the handle of a *session.
//
//export answerCallback
func answerCallback(context C.uintptr_t, argument C.int64_t, answer *C.int64_t) C.int32_t {
	value, err := cgo.Handle(context).Value().(*session).onCallback(int64(argument))
	if err != nil {
		return 1
	}
	*answer = C.int64_t(value)
	return 0
}
