package org.mobilesync;

import org.mobilesync.internal.json.JsonText;

/** The value of a subscription parameter: a text, a number or a Boolean. */
public final class SyncParameterValue {
    private static final int LONGEST_TEXT = 200;

    private final Object value;

    private SyncParameterValue(Object value) {
        this.value = value;
    }

    /**
     * A text.
     *
     * @throws SyncException INVALID_ARGUMENT above 200 UTF-16 units, or with NUL
     */
    public static SyncParameterValue text(String value) {
        if (value.length() > LONGEST_TEXT || value.indexOf(0) >= 0) throw invalid();
        return new SyncParameterValue(value);
    }

    /**
     * A number.
     *
     * @throws SyncException INVALID_ARGUMENT for a number that is not finite
     */
    public static SyncParameterValue number(double value) {
        if (Double.isNaN(value) || Double.isInfinite(value)) throw invalid();
        // Zero has one sign.
        return new SyncParameterValue(value == 0 ? 0.0 : value);
    }

    /** A Boolean. */
    public static SyncParameterValue flag(boolean value) {
        return new SyncParameterValue(value);
    }

    private static SyncException invalid() {
        return new SyncException(SyncException.Code.INVALID_ARGUMENT, "a parameter's value is a finite number, or a"
            + " text of up to " + LONGEST_TEXT + " characters without NUL");
    }

    /** Returns the value of a JSON text; null for another text. For the library's own use. */
    public static SyncParameterValue ofJson(String json) {
        String text = JsonText.string(json);
        try {
            if (text != null) return text(text);
            if (json.equals("true") || json.equals("false")) return flag(json.equals("true"));
            return json.matches("-?\\d.*") ? number(Double.parseDouble(json)) : null;
        } catch (NumberFormatException | SyncException error) {
            return null;
        }
    }

    /** Returns a String, a Double or a Boolean. */
    public Object value() {
        return value;
    }

    /** Returns the value as JSON. */
    public String json() {
        return value instanceof String ? JsonText.quoted((String) value) : value.toString();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SyncParameterValue && ((SyncParameterValue) other).value.equals(value);
    }

    @Override
    public int hashCode() {
        return value.hashCode();
    }

    @Override
    public String toString() {
        return json();
    }
}
