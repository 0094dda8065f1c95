import ArgumentParser

/// The device of a command.
struct FolderOption: ParsableArguments {
    @Option(help: "The device's folder.")
    var folder: String

    /// Opens the device.
    func device() throws -> FieldDevice { try FieldDevice(folder: folder) }
}
