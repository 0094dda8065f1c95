import MobileSync

/// JSON with the errors of this library.
extension JSONValue {
    /// Parses JSON text in UTF-8.
    ///
    /// - Throws: `EntityError.wrongDataType` when the bytes are not JSON.
    init(payload: some Sequence<UInt8>) throws(EntityError) {
        do {
            self = try JSONValue(parsing: payload)
        } catch {
            throw EntityError(.wrongDataType, error.message)
        }
    }

    /// Encodes the value as JSON text in UTF-8.
    ///
    /// - Throws: `EntityError.wrongDataType` for a number that is not finite.
    func payload() throws(EntityError) -> [UInt8] {
        do {
            return try bytes()
        } catch {
            throw EntityError(.wrongDataType, error.message)
        }
    }
}
