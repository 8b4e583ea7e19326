// Package service calls the cross-language service over Aeron's C client. CONTRACT.md defines
// messages, operations, errors and deadlines. Without cgo, the package has the channels only, for
// programs over other transports.
package service

// The channels, unless an option names others.
const (
	RequestChannel  = "aeron:ipc?term-length=4m|mtu=8k"
	ResponseChannel = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"
)
