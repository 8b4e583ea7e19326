/* The native methods of InProcessTransport, over the library of the service. */
#include <jni.h>
#include <stddef.h>
#include <stdint.h>

#include "../c/session.h"

#define SESSION(handle) ((session_t *)(intptr_t)(handle))

JNIEXPORT jlong JNICALL Java_crosslanguage_InProcessTransport_openSession(JNIEnv *env, jclass class)
{
    (void)env;
    (void)class;
    session_t *session = NULL;
    session_connect(&session, NULL);
    return (jlong)(intptr_t)session;
}

JNIEXPORT void JNICALL Java_crosslanguage_InProcessTransport_sendMessage(
    JNIEnv *env, jclass class, jlong session, jbyteArray message, jint length)
{
    (void)class;
    jbyte *bytes = (*env)->GetPrimitiveArrayCritical(env, message, NULL);
    if (NULL != bytes)
    {
        session_send(SESSION(session), (const uint8_t *)bytes, (size_t)length, 0);
        (*env)->ReleasePrimitiveArrayCritical(env, message, bytes, JNI_ABORT);
    }
}

JNIEXPORT jobject JNICALL Java_crosslanguage_InProcessTransport_receiveMessage(JNIEnv *env, jclass class, jlong session)
{
    (void)class;
    const uint8_t *message;
    size_t length;
    if (SESSION_OK != session_receive(SESSION(session), &message, &length, 0))
    {
        return NULL;
    }
    return (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)message, (jlong)length);
}

JNIEXPORT void JNICALL Java_crosslanguage_InProcessTransport_closeSession(JNIEnv *env, jclass class, jlong session)
{
    (void)env;
    (void)class;
    session_close(SESSION(session));
}
