/** The cross-language service in Java. CONTRACT.md defines messages, operations, errors and deadlines. */
package crosslanguage;
