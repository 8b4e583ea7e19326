package crosslanguage;

import crosslanguage.protocol.Status;

/** Numbers and errors of the contract that are not in its schema. */
final class Contract
{
    static final String REQUEST_CHANNEL = "aeron:ipc?term-length=4m|mtu=8k";
    static final int REQUEST_STREAM = 3001;
    static final String RESPONSE_CHANNEL = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k";
    static final int RESPONSE_STREAM = 3002;

    static final int SMALL_ARRAY_LIMIT = 64;
    static final int SQUARES_LIMIT = 20_000;
    static final int OBJECT_LIMIT = 1_024;
    static final int OPEN_CALL_LIMIT = 64;

    private Contract()
    {
    }

    /** An operation has no result. */
    static final class FailureException extends Exception
    {
        private static final long serialVersionUID = 1;

        final Status status;

        FailureException(final Status status, final String text)
        {
            super(text, null, false, false);
            this.status = status;
        }
    }

    /** A call has no result. The reason is a name of the contract. */
    static final class CallException extends Exception
    {
        private static final long serialVersionUID = 1;

        CallException(final String reason, final String text)
        {
            super(reason + ": " + text);
        }
    }
}
