package android.os;

/** A stand-in for Android's class. */
public class Bundle {}
