import ArgumentParser

struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "load", abstract: "To come.")
}
