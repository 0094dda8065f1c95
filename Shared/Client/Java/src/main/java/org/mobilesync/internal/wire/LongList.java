package org.mobilesync.internal.wire;

import java.util.Arrays;

/** A growing list of numbers. */
public final class LongList {
    private long[] values = new long[4];
    private int size;

    /** Adds a number at the end. */
    public void add(long value) {
        if (size == values.length) values = Arrays.copyOf(values, 2 * size);
        values[size++] = value;
    }

    /** Returns the count of numbers. */
    public int size() {
        return size;
    }

    /** Returns whether the list has no numbers. */
    public boolean isEmpty() {
        return size == 0;
    }

    /** Returns the number at an index below {@link #size()}. */
    public long get(int index) {
        if (index >= size) throw new IndexOutOfBoundsException("index " + index + " of " + size);
        return values[index];
    }

    /** Returns the numbers in order. */
    public long[] toArray() {
        return Arrays.copyOf(values, size);
    }
}
