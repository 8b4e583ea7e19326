package crosslanguage;

import crosslanguage.codecs.Operation;

/** Numbers of the contract that are not in its schema. */
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

    /** Returns the kind of an operation's argument. */
    static Kind argument(final Operation operation)
    {
        switch (operation)
        {
            case PING:
                return Kind.VOID;
            case SUCCESSOR:
            case CALLBACK:
            case SQUARES:
                return Kind.INTEGER;
            case REVERSE:
                return Kind.TEXT;
            case RUNNING_SUMS:
            case TOTAL:
                return Kind.INTEGERS;
            case CREATE:
                return Kind.CREATE_OBJECT;
            case CALL:
                return Kind.CALL_OBJECT;
            case TRANSFORM:
            case TRANSFORM_ALL:
                return Kind.VALUE;
            default:
                throw new IllegalArgumentException("no such operation: " + operation);
        }
    }

    /** Returns the kind of an operation's result. */
    static Kind result(final Operation operation)
    {
        switch (operation)
        {
            case PING:
                return Kind.VOID;
            case SUCCESSOR:
            case CALLBACK:
            case TOTAL:
                return Kind.INTEGER;
            case REVERSE:
                return Kind.TEXT;
            case RUNNING_SUMS:
            case SQUARES:
                return Kind.INTEGERS;
            case CREATE:
            case CALL:
                return Kind.OBJECT_VALUE;
            case TRANSFORM:
            case TRANSFORM_ALL:
                return Kind.VALUE;
            default:
                throw new IllegalArgumentException("no such operation: " + operation);
        }
    }
}
