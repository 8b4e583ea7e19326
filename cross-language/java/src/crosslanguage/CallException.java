package crosslanguage;

/** A call has no result, for a reason other than the server's answer. */
final class CallException extends Exception
{
    private static final long serialVersionUID = 1;

    /** The reason. The names are those of the contract. */
    enum Reason
    {
        /** No server is connected, or the server has closed this session. */
        NOT_CONNECTED,
        /** The server has not accepted the request within the timeout. */
        BACK_PRESSURED,
        /** The server has not answered within the timeout. The operation may have been executed. */
        TIMED_OUT,
        /** The Aeron client is closed. */
        CLOSED,
        /** The argument cannot be sent. */
        INVALID_REQUEST,
        /** The server's message does not follow the contract. */
        MALFORMED_RESPONSE
    }

    final Reason reason;

    CallException(final Reason reason, final String text)
    {
        super(reason + ": " + text);
        this.reason = reason;
    }
}
