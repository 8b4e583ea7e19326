package service

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// Canonical returns the canonical text of a body, equal in all languages.
func Canonical(kind Kind, body any) string {
	var text strings.Builder
	switch body := body.(type) {
	case Pair:
		names := kind.fields()
		canonical(&text, map[string]any{names[0]: body.First, names[1]: body.Second})
	case []int64:
		values := make([]any, len(body))
		for i, value := range body {
			values[i] = value
		}
		canonical(&text, values)
	default:
		canonical(&text, body)
	}
	return text.String()
}

func canonical(text *strings.Builder, value any) {
	switch value := value.(type) {
	case nil:
		text.WriteString("null")
	case float64:
		fmt.Fprintf(text, "0x%016x", math.Float64bits(value))
	case string:
		canonicalText(text, value)
	case []any:
		text.WriteByte('[')
		for i, member := range value {
			if i > 0 {
				text.WriteByte(',')
			}
			canonical(text, member)
		}
		text.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		text.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				text.WriteByte(',')
			}
			canonicalText(text, key)
			text.WriteByte(':')
			canonical(text, value[key])
		}
		text.WriteByte('}')
	default:
		fmt.Fprint(text, value)
	}
}

func canonicalText(text *strings.Builder, value string) {
	text.WriteByte('"')
	for _, character := range value {
		switch {
		case character == '"' || character == '\\':
			text.WriteByte('\\')
			text.WriteRune(character)
		case character < ' ':
			fmt.Fprintf(text, "\\u%04x", character)
		default:
			text.WriteRune(character)
		}
	}
	text.WriteByte('"')
}
