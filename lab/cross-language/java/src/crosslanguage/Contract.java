package crosslanguage;

import crosslanguage.codecs.Operation;
import crosslanguage.codecs.Status;

/** Numbers, kinds and errors of the contract that are not in its schema. */
final class Contract
{
    static final String REQUEST_CHANNEL = "aeron:ipc?term-length=4m|mtu=8k";
    static final int REQUEST_STREAM = 3001;
    static final String RESPONSE_CHANNEL = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k";
    static final int RESPONSE_STREAM = 3002;

    static final int SMALL_ARRAY_LIMIT = 64;
    static final int LIST_LIMIT = 65_534;
    static final int SQUARES_LIMIT = 20_000;
    static final int OBJECT_LIMIT = 1_024;
    static final int OPEN_CALL_LIMIT = 64;
    static final int DEPTH_LIMIT = 64;
    static final int NODE_LIMIT = 65_534;

    private Contract()
    {
    }

    /** The kind of a body, and its Java type. */
    enum Kind
    {
        /** {@code null}. */
        VOID,
        /** {@link Long}. */
        INTEGER,
        /** {@link String}. */
        TEXT,
        /** {@code long[]}. */
        INTEGERS,
        /** {@link Pair}. */
        CREATE_OBJECT,
        /** {@link Pair}. */
        CALL_OBJECT,
        /** {@link Pair}. */
        OBJECT_VALUE,
        /** {@code null}, {@link Boolean}, {@link Long}, {@link Double}, {@link String}, a list or a map of these. */
        VALUE
    }

    /** The two fields of a kind that has them. */
    record Pair(long first, long second)
    {
    }

    /** The bytes are not the expected message or body, or a body exceeds a limit. */
    static final class MalformedException extends Exception
    {
        private static final long serialVersionUID = 1;

        MalformedException(final String text)
        {
            super(text, null, false, false);
        }
    }

    /** The answer of a server that is an error. */
    static final class FailureException extends Exception
    {
        private static final long serialVersionUID = 1;

        /** Never {@link Status#OK}. */
        final Status status;

        FailureException(final Status status, final String text)
        {
            super(text, null, false, false);
            this.status = status;
        }
    }

    /** A call has no result, for a reason other than the server's answer. The reason is a name of the contract. */
    static final class CallException extends Exception
    {
        private static final long serialVersionUID = 1;

        CallException(final String reason, final String text)
        {
            super(reason + ": " + text);
        }
    }

    /** Returns the kind of an operation's argument. */
    static Kind argument(final Operation operation)
    {
        return switch (operation)
        {
            case PING -> Kind.VOID;
            case SUCCESSOR, CALLBACK, SQUARES -> Kind.INTEGER;
            case REVERSE -> Kind.TEXT;
            case RUNNING_SUMS, TOTAL -> Kind.INTEGERS;
            case CREATE -> Kind.CREATE_OBJECT;
            case CALL -> Kind.CALL_OBJECT;
            default -> Kind.VALUE;
        };
    }

    /** Returns the kind of an operation's result. */
    static Kind result(final Operation operation)
    {
        return switch (operation)
        {
            case PING -> Kind.VOID;
            case SUCCESSOR, CALLBACK, TOTAL -> Kind.INTEGER;
            case REVERSE -> Kind.TEXT;
            case RUNNING_SUMS, SQUARES -> Kind.INTEGERS;
            case CREATE, CALL -> Kind.OBJECT_VALUE;
            default -> Kind.VALUE;
        };
    }
}
