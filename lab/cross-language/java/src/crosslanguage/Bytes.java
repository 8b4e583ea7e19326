package crosslanguage;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.MessageLite;
import org.agrona.DirectBuffer;

import java.io.IOException;
import java.io.UncheckedIOException;

/** Holds one message after the other. New memory for each would be slow: no cache has it. */
final class Bytes
{
    byte[] array = new byte[0];
    int length;

    /** Encodes a message. */
    void write(final MessageLite message)
    {
        reserve(message.getSerializedSize());
        try
        {
            final CodedOutputStream output = CodedOutputStream.newInstance(array, 0, length);
            message.writeTo(output);
            output.checkNoSpaceLeft();
        }
        catch (final IOException ex)
        {
            throw new UncheckedIOException(ex);
        }
    }

    /** Returns the input of a decoder, which lasts until the next message. */
    CodedInputStream read(final DirectBuffer buffer, final int offset, final int messageLength)
    {
        if (buffer.byteArray() != null)
        {
            return CodedInputStream.newInstance(buffer.byteArray(), buffer.wrapAdjustment() + offset, messageLength);
        }
        reserve(messageLength);
        buffer.getBytes(offset, array, 0, length);
        return CodedInputStream.newInstance(array, 0, length);
    }

    private void reserve(final int messageLength)
    {
        length = messageLength;
        if (array.length < length)
        {
            array = new byte[length];
        }
    }
}
