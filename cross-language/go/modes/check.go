// Package modes has the modes of a caller's program that are equal over all transports: checking, measuring,
// connecting.
package modes

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"crosslanguage/service"
)

const (
	// The greatest argument that a program's callback accepts.
	callbackLimit = 12
	// Longer results are printed as their length and hash.
	resultLimit = 120
)

// A Connection calls a server. The error of Call is a *service.Failure, or says why there is no answer.
type Connection interface {
	Call(operation service.Operation, argument any) (any, error)
	Close()
}

// Square answers callbacks: with the square of a small integer.
func Square(argument int64) (int64, error) {
	if argument < 0 || argument > callbackLimit {
		return 0, fmt.Errorf("%d is not in 0 to %d", argument, callbackLimit)
	}
	return argument * argument, nil
}

// Lines calls a function with number and two words of each line: the first word, and the rest.
func Lines(path string, each func(number int, first, rest string) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		first, rest, hasBlank := strings.Cut(line, " ")
		if !hasBlank {
			return fmt.Errorf("%s:%d: a line of one word", path, i+1)
		}
		if err := each(i+1, first, rest); err != nil {
			return err
		}
	}
	return nil
}

// Check calls OPERATION ARGUMENT, the argument in JSON, for each line of a file, and prints the results.
func Check(connection Connection, path string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	return Lines(path, func(number int, name, text string) error {
		operation, err := service.ParseOperation(name)
		if err != nil {
			return err
		}
		argument, err := service.ReadJSON([]byte(text), operation.Argument())
		if err != nil {
			return err
		}
		result, err := connection.Call(operation, argument)
		var failure *service.Failure
		switch {
		case errors.As(err, &failure):
			fmt.Fprintln(out, number, operation, failure.Status)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, number, operation, shortened(service.Canonical(operation.Result(), result)))
		}
		return nil
	})
}

func shortened(text string) string {
	if len(text) <= resultLimit {
		return text
	}
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return fmt.Sprintf("%d bytes %016x", len(text), hash.Sum64())
}
