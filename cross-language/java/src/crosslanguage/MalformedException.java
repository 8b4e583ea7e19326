package crosslanguage;

/** The bytes are not the expected message or body, or a body is beyond the encoding's limits. */
final class MalformedException extends Exception
{
    private static final long serialVersionUID = 1;

    MalformedException(final String message)
    {
        super(message, null, false, false);
    }
}
