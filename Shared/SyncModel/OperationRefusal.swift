/// An operation of a device that was not taken (DeviceProtocol.md, Operations).
package struct OperationRefusal: Hashable, Sendable {
    package var operationID: String
    /// Of `OperationRefusalCode`.
    package var code: UInt32
    /// For developers.
    package var message: String

    package init(operationID: String, code: UInt32, message: String) {
        self.operationID = operationID
        self.code = code
        self.message = message
    }
}
