package crosslanguage;

import crosslanguage.codecs.Status;

/** The answer of a server that is an error. */
final class FailureException extends Exception
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
