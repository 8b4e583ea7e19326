/* The native methods of JniCaller. */
#include <jni.h>
#include <stddef.h>
#include <stdint.h>

#include "../cross_language.h"

static JavaVM *vm;
static jclass connection_class;
static jmethodID answer_method;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *java_vm, void *reserved)
{
    (void)reserved;
    JNIEnv *env;
    if (JNI_OK != (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_8))
    {
        return JNI_ERR;
    }
    jclass found = (*env)->FindClass(env, "crosslanguage/InProcessConnection");
    if (NULL == found)
    {
        return JNI_ERR;
    }
    vm = java_vm;
    connection_class = (*env)->NewGlobalRef(env, found);
    answer_method = (*env)->GetStaticMethodID(env, found, "answer", "(J)J");
    return NULL == connection_class || NULL == answer_method ? JNI_ERR : JNI_VERSION_1_8;
}

/* Runs in the thread of the call, which is one of Java's. */
static int32_t answer(void *context, int64_t argument, int64_t *result)
{
    (void)context;
    JNIEnv *env;
    if (JNI_OK != (*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8))
    {
        return 1;
    }
    *result = (*env)->CallStaticLongMethod(env, connection_class, answer_method, (jlong)argument);
    if ((*env)->ExceptionCheck(env))
    {
        (*env)->ExceptionClear(env);
        return 1;
    }
    return 0;
}

JNIEXPORT jlong JNICALL Java_crosslanguage_JniCaller_newSession(JNIEnv *env, jclass class)
{
    (void)env;
    (void)class;
    return (jlong)(intptr_t)cross_language_session_new(answer, NULL);
}

JNIEXPORT jint JNICALL Java_crosslanguage_JniCaller_call(
    JNIEnv *env,
    jclass class,
    jlong session,
    jbyte operation,
    jbyte encoding,
    jlong argument,
    jlong argument_length,
    jlong result,
    jlong result_length)
{
    (void)env;
    (void)class;
    return cross_language_call(
        (cross_language_session_t *)(intptr_t)session,
        (uint8_t)operation,
        (uint8_t)encoding,
        (const uint8_t *)(intptr_t)argument,
        (size_t)argument_length,
        (const uint8_t **)(intptr_t)result,
        (size_t *)(intptr_t)result_length);
}

JNIEXPORT void JNICALL Java_crosslanguage_JniCaller_freeSession(JNIEnv *env, jclass class, jlong session)
{
    (void)env;
    (void)class;
    cross_language_session_free((cross_language_session_t *)(intptr_t)session);
}
