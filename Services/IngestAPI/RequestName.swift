import Synchronization

/// The name under which one request is found in answers and logs.
enum RequestName {
    /// Begins anywhere: processes share no names, nor does one that is started again.
    private static let last = Atomic<UInt64>(.random(in: .min ... .max))

    /// A fresh one: 16 hexadecimal digits that look random. No secret: it only has to be another each time.
    static func make() -> String {
        // The steps and the mixing of SplitMix64: each name comes once in 2^64.
        var number = last.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        number ^= number >> 31
        return String(unsafeUninitializedCapacity: 16) { digits in
            for index in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * index)) & 0xF
                digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
            }
            return 16
        }
    }
}
