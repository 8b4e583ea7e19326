package crosslanguage;

/**
 * The kind of a body, and its Java type.
 */
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
    CREATE_OBJECT("initialValue", "amount"),
    /** {@link Pair}. */
    CALL_OBJECT("objectId", "amount"),
    /** {@link Pair}. */
    OBJECT_VALUE("objectId", "value"),
    /** {@code null}, {@link Boolean}, {@link Long}, {@link Double}, {@link String}, a list or a map of these. */
    VALUE;

    /** Names of the two fields in JSON. */
    final String first;
    final String second;

    Kind()
    {
        this(null, null);
    }

    Kind(final String first, final String second)
    {
        this.first = first;
        this.second = second;
    }

    /** The two fields of a kind that has names for them. */
    record Pair(long first, long second)
    {
    }
}
