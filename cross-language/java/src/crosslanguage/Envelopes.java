package crosslanguage;

import crosslanguage.codecs.CallbackResponseDecoder;
import crosslanguage.codecs.MessageHeaderDecoder;
import crosslanguage.codecs.RequestDecoder;
import org.agrona.DirectBuffer;

/** Envelopes: the first 24 bytes of each message. All templates have the same fields at the same offsets. */
final class Envelopes
{
    /** Length of message header and block. The body follows. */
    static final int LENGTH = MessageHeaderDecoder.ENCODED_LENGTH + RequestDecoder.BLOCK_LENGTH;

    private Envelopes()
    {
    }

    /** Checks the envelope of a message and wraps its header. Returns the index of the body. */
    static int read(final DirectBuffer message, final MessageHeaderDecoder header) throws MalformedException
    {
        if (message.capacity() < MessageHeaderDecoder.ENCODED_LENGTH)
        {
            throw new MalformedException("a message of " + message.capacity() + " bytes");
        }
        header.wrap(message, 0);
        final int template = header.templateId();
        if (header.schemaId() != MessageHeaderDecoder.SCHEMA_ID ||
            template < RequestDecoder.TEMPLATE_ID || template > CallbackResponseDecoder.TEMPLATE_ID)
        {
            throw new MalformedException("template " + template + " of schema " + header.schemaId());
        }
        final int body = MessageHeaderDecoder.ENCODED_LENGTH + header.blockLength();
        if (header.blockLength() < RequestDecoder.BLOCK_LENGTH || body > message.capacity())
        {
            throw new MalformedException(
                "block length " + header.blockLength() + " in a message of " + message.capacity() + " bytes");
        }
        return body;
    }
}
